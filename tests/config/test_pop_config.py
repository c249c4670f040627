"""How many calls a PoP takes where its operator has not said."""

import msgspec
import pytest

from voicepipe.config import Config, pop_config


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, 6),
        ({"whisper": {"threads": 1}}, 2),
        ({"whisper": {"device": "cuda:1"}}, pop_config.ONE_PROCESS),
        ({"engines": {"asr": "scripted"}}, pop_config.ONE_PROCESS),
        ({"pop": {"slots": 7}}, 7),
    ],
)
def test_slots_are_what_the_machine_can_hear(
    tables: dict[str, object], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pop_config, "cores", lambda: 3)
    assert pop_config.with_slots(msgspec.convert(tables, Config)).pop.slots == expected
