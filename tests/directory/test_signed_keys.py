"""`ek_` keys that directories make: every directory takes them, and finds the sessions that they were made for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from voicepipe.base.errors import TooManySecrets, Unauthorized
from voicepipe.directory import signed_keys
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.directory.signed_keys import SESSIONS, KeySession, SignedKeys
from voicepipe.directory.tokens import Signer

KEYS = {name: Ed25519PrivateKey.generate() for name in ("a", "b")}
PUBLIC = {name: key.public_key() for name, key in KEYS.items()}
SESSION = b'{"instructions": "Be kind."}'


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def directories(bus: MemoryBus, *names: str, clock: Clock | None = None) -> AsyncIterator[list[SignedKeys]]:
    made = [SignedKeys(bus, Signer(name, KEYS[name]), PUBLIC, clock or Clock()) for name in names]
    async with asyncio.TaskGroup() as group:
        jobs = [group.create_task(each.run()) for each in made]
        await asyncio.sleep(0)
        yield made
        for job in jobs:
            job.cancel()


async def test_a_key_of_one_directory_opens_another_with_its_session() -> None:
    async with directories(MemoryBus(), "a", "b") as (one, other):
        key, until = await one.make("acme", "clinic", SESSION, ("voice",), 600)
        assert until == 1_700_000_600 and len(key) < 1000
        await asyncio.sleep(0)
        said = other.read(key)
        assert (said.tenant, said.agent, said.locked) == ("acme", "clinic", ("voice",))
        assert await other.session(said) == SESSION


async def test_a_directory_that_was_started_since_asks_the_others() -> None:
    bus = MemoryBus()
    async with directories(bus, "a") as (one,):
        key, _ = await one.make("acme", "clinic", SESSION, (), 600)
        async with directories(bus, "b") as (later,):
            assert await later.session(later.read(key)) == SESSION


async def test_a_session_that_nobody_knows_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_keys, "WAIT_S", 0.02)
    async with directories(MemoryBus(), "a") as (one,):
        key, _ = await one.make("acme", "clinic", SESSION, (), 600)
        bare, _ = await one.make("acme", "clinic", b"", (), 600)
    async with directories(MemoryBus(), "b") as (stranger,):
        assert await stranger.session(stranger.read(bare)) == b""
        with pytest.raises(Unauthorized, match="ask for another"):
            await stranger.session(stranger.read(key))


async def test_a_key_expires_and_a_forged_one_is_none() -> None:
    clock = Clock()
    async with directories(MemoryBus(), "a", clock=clock) as (one,):
        key, _ = await one.make("acme", "clinic", b"", (), 600)
        head, payload, signature = key.split(".")
        token = Signer("a", KEYS["a"]).signed(b'{"aud": "fra.1", "exp": 1e10, "grant": {"id": "x", "tenant": "acme"}}')
        stolen = Signer("a", Ed25519PrivateKey.generate()).signed(
            b'{"ek": "x", "tenant": "acme", "agent": "", "until": 9}'
        )
        for forged in (f"{head}.{payload}.{signature[:-4]}AAAA", f"{head}..{signature}", "ek_", "ek_x", f"ek_{token}",
                       f"ek_{stolen}", key.upper()):  # fmt: skip
            with pytest.raises(Unauthorized):
                one.read(forged)
        clock.now += 599
        one.read(key)
        clock.now += 1
        with pytest.raises(Unauthorized):
            one.read(key)


async def test_a_tenant_has_room_for_so_many_and_takes_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signed_keys, "KEPT_BYTES", 10 * len(SESSION))
    clock = Clock()
    async with directories(MemoryBus(), "a", clock=clock) as (one,):
        keys = [await one.make("acme", "clinic", SESSION, (), 60) for _ in range(10)]
        with pytest.raises(TooManySecrets, match="expires_after"):
            await one.make("acme", "clinic", SESSION, (), 60)
        await one.make("other", "clinic", SESSION, (), 60)
        assert await one.session(one.read(keys[0][0])) == SESSION
        clock.now += 60
        await one.make("acme", "clinic", SESSION, (), 60)
        assert len(one._sessions) == 1, "what has expired is forgotten"


async def test_what_cannot_be_read_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    bus = MemoryBus()
    async with directories(bus, "a") as (one,):
        for subject in (signed_keys.SESSIONS, signed_keys.QUESTIONS):
            for data in (b"", b"{}", b'{"ek": 1}', b"\xff", b"[" * 5000):
                await bus.publish(subject, data)
        await asyncio.sleep(0.01)
        key, _ = await one.make("acme", "clinic", SESSION, (), 60)
        assert await one.session(one.read(key)) == SESSION
    assert "cannot be read" in caplog.text


async def test_what_has_expired_is_kept_nowhere_and_taken_from_nobody() -> None:
    clock = Clock()
    kept = SignedKeys(MemoryBus(), Signer("a", KEYS["a"]), PUBLIC, clock)
    await kept.make("acme", "front-desk", b"{}", (), 60)
    clock.now += 61
    await kept.make("clinic", "front-desk", b"{}", (), 60)
    assert {session.tenant for session in kept._sessions.values()} == {"clinic"}
    assert kept._size.keys() == {"clinic"}
    old = KeySession("e", "acme", int(clock.now), msgspec.Raw(b"{}"))
    await kept._take(BusMessage(SESSIONS, msgspec.json.encode(old)))
    assert "e" not in kept._sessions
