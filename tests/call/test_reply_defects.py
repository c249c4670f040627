"""An engine that raises what no engine should: its reply fails, and the call goes on."""

import msgspec
import pytest

from tests.support import virtual_time
from tests.support.scenario import Delays, load, play


def test_a_defect_of_an_engine_ends_the_reply_and_not_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.engines.scripted.EngineBusy", UnicodeError)
    scenario = load("guess_refused")
    again = msgspec.structs.replace(scenario.says[0], at_ms=7000)
    scenario = msgspec.structs.replace(
        scenario,
        says=[*scenario.says, again],
        hears=scenario.hears * 2,
        length_ms=14_000,
        delays=Delays(llm_fails=99),
        agent={"fallback": "Sorry."},
    )

    recording = virtual_time.run(play(scenario))

    story = recording.story
    assert len([line for line in story if line.startswith("reply failed")]) == 2, story
    assert len([at for at in (recording.audible(0), recording.audible(7000)) if at is not None]) == 2, "fallbacks"
    assert story[-1] == "ended: caller"
