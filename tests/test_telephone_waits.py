"""A recogniser that weighs readings, on a telephone's line, in virtual time."""

from dataclasses import replace

import pytest

from tests.scenario import Says, Scenario, play
from voicepipe.engines.base import Hypothesis
from voicepipe.engines.scripted import ScriptedAsrStream
from voicepipe.turn.endpoint import EndpointConfig

pytestmark = pytest.mark.virtual_time
ENDED_MS = 1300


@pytest.mark.parametrize("weighs", [True, False])
async def test_only_who_mishears_by_telephone_waits_less_for_more(
    weighs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hypothesis = ScriptedAsrStream._hypothesis

    def weighed(stream: ScriptedAsrStream) -> Hypothesis:
        return replace(hypothesis(stream), ends=0.0)

    if weighs:
        monkeypatch.setattr(ScriptedAsrStream, "_hypothesis", weighed)
    waited = []
    for narrow in (False, True):
        scenario = Scenario(
            about="", hears=["my number is"], says=[Says(500, ENDED_MS - 500)], length_ms=6000, narrow=narrow
        )
        recording = await play(scenario)
        waited.append((recording.audible(ENDED_MS) or 0) - ENDED_MS)
    longest, by_telephone = EndpointConfig().longest_ms, EndpointConfig().telephone_longest_ms
    assert longest <= waited[0] < longest + 150
    least = by_telephone if weighs else longest
    assert least <= waited[1] < least + 150
