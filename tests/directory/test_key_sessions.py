"""Sessions of `ek_` keys at a PoP: how much of them is kept, and for how long."""

import pytest

from voicepipe.directory import key_sessions
from voicepipe.directory.key_sessions import KEPT_S, KeySessions


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_sessions, "WAIT_S", 0.01)
    monkeypatch.setattr(key_sessions, "KEPT_BYTES", 1000)


async def test_a_session_that_comes_again_counts_once() -> None:
    """Its bytes were added each time: in the end it had the room of all others."""
    kept = KeySessions()
    await kept.put("acme", "call_0", b"x" * 100)
    for number in range(50):
        await kept.put("acme", "call_1", b"%0100d" % number)
    assert await kept.get("acme", "call_0") == b"x" * 100
    assert await kept.get("acme", "call_1") == b"%0100d" % 49


async def test_what_comes_again_is_as_new_as_the_last_of_it() -> None:
    now = 0.0
    kept = KeySessions(lambda: now)
    await kept.put("acme", "call_0", b"{}")
    await kept.put("acme", "call_1", b"{}")
    now = KEPT_S / 2
    await kept.put("acme", "call_0", b"{}")
    now = KEPT_S
    await kept.put("acme", "call_2", b"{}")
    assert [await kept.get("acme", f"call_{number}") for number in range(3)] == [b"{}", None, b"{}"]


async def test_one_that_is_larger_than_all_there_may_be_is_not_kept() -> None:
    kept = KeySessions()
    await kept.put("acme", "call_0", b"x" * 1001)
    assert await kept.get("acme", "call_0") is None
    await kept.put("clinic", "call_1", b"x" * 1000)
    assert await kept.get("clinic", "call_1") == b"x" * 1000


async def test_whose_call_it_is_is_known_by_its_session() -> None:
    now = 0.0
    kept = KeySessions(lambda: now)
    await kept.put("acme", "call_0", b"{}")
    await kept.put("clinic", "call_1", b"{}")
    assert [kept.owner(f"call_{number}") for number in range(3)] == ["acme", "clinic", ""]
    now = KEPT_S
    await kept.put("acme", "call_2", b"{}")
    assert kept.owner("call_0") == kept.owner("") == ""
