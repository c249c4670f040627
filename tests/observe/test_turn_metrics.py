"""How replies are made and said, from whole calls to what Prometheus is told."""

from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from tests.observe.test_metrics import ASKED, POP, of, turn
from tests.support.scenario import Delays, Says, Scenario, load, play
from voicepipe.conversation.events import ReplyDone, ToolUse
from voicepipe.observe.last_turns import full_turn
from voicepipe.observe.metric_families import Families
from voicepipe.observe.turn_metrics import TurnMetrics

LONG = "It is an old harbour house with a long story, a long menu and a longer terrace to look at the ships from."


def told(reply: ReplyDone) -> dict[str, float]:
    """Each sample by its name and the values of its labels but the PoP's."""
    metrics = TurnMetrics(Families(registry := CollectorRegistry(), {"pop": "fra1"}))
    metrics.turn(of("sip"), full_turn(ASKED, reply, POP.budget_ms))
    samples = [sample for family in registry.collect() for sample in family.samples]
    return {f"{sample.name} {' '.join([*sample.labels.values()][1:])}".rstrip(): sample.value for sample in samples}


async def replies(*over: Says, hears: str = "", delays: Delays | None = None) -> list[ReplyDone]:
    """To one question. `over`: what sounds while it is answered, and what is made of it."""
    asks = Says(500, 1400)
    spoken = Scenario(
        about="A turn.", hears=["tell me about the house please", hears], says=[asks, *over], length_ms=14_000,
        replies={"tell me about the house please": LONG}, delays=delays or Delays(),
    )  # fmt: skip
    return [event for _, event in (await play(spoken)).events if isinstance(event, ReplyDone)]


@pytest.mark.virtual_time
async def test_how_fast_the_model_writes_is_that_of_its_first_phrase() -> None:
    """Behind that it is read as fast as its words are spoken."""
    [reply] = await replies(delays=Delays(first_token_ms=80, token_ms=30, tts_ms=60))
    assert reply.record.tokens == reply.output_tokens == len(LONG.split())
    assert 2 <= reply.record.phrase_tokens < reply.record.tokens
    seen = told(reply)
    assert seen["voicepipe_llm_token_interval_seconds_count"] == 1
    assert seen["voicepipe_llm_token_interval_seconds_sum"] == pytest.approx(0.03)
    assert seen["voicepipe_llm_tokens_total"] == reply.output_tokens
    assert seen["voicepipe_stage_seconds_sum sip first_token"] == pytest.approx(0.08)


@pytest.mark.virtual_time
async def test_what_was_dropped_before_the_turn_was_over_is_not_counted() -> None:
    played = await play(load("guess_was_wrong"))
    [reply] = [event for _, event in played.events if isinstance(event, ReplyDone)]
    assert reply.record.discarded and reply.record.tokens == reply.output_tokens == 3


@pytest.mark.virtual_time
@pytest.mark.parametrize("tts_ms", [60, 600])
async def test_how_fast_the_voice_is_holds_also_where_the_reply_waits_for_its_playout(tts_ms: float) -> None:
    [reply] = await replies(delays=Delays(tts_ms=tts_ms))
    record = reply.record
    assert record.sound_ms and record.sound_ms > 3000 and record.voicing_ms
    assert record.voicing_ms % tts_ms == 0, "each phrase took the voice so long, and nothing else is in it"
    seen = told(reply)
    assert seen["voicepipe_tts_realtime_factor_count"] == 1
    assert seen["voicepipe_tts_realtime_factor_sum"] == pytest.approx(record.voicing_ms / record.sound_ms)


@pytest.mark.parametrize(
    "record",
    [
        {"at_token": 100.0, "at_phrase": 100.0, "phrase_tokens": 1, "tokens": 1},
        {"at_token": 100.0, "at_phrase": 2100.0, "phrase_tokens": 9, "tokens": 9, "tool": True},
        {"at_phrase": 2100.0},
        {"sound_ms": None, "voicing_ms": None},
    ],
)
def test_what_tells_nothing_of_a_model_or_a_voice_is_left_out(record: dict[str, object]) -> None:
    seen = told(turn(turn_latency=341.0, at_commit=140.0, **record))
    assert seen["voicepipe_llm_token_interval_seconds_count"] == 0
    assert seen["voicepipe_tts_realtime_factor_count"] == 0


@pytest.mark.virtual_time
@pytest.mark.parametrize(
    ("sound", "hears", "effect"),
    [
        (Says(4000, 20), "", "ducked"),  # a click
        (Says(4000, 400), "", "held"),  # a cough
        (Says(4000, 300), "mm", "held"),
        (None, "", None),
        (Says(4000, 1200), "stop that please", None),  # an interruption
    ],
)
async def test_a_sound_for_which_a_reply_gave_way_and_went_on_is_told(
    sound: Says | None, hears: str, effect: str | None
) -> None:
    reply, *_ = await replies(*([sound] if sound else []), hears=hears)
    seen = told(reply)
    for each in ("ducked", "held"):
        assert seen[f"voicepipe_false_interruptions_total sip {each}"] == (each == effect)
    assert reply.status == ("completed" if effect or not sound else "cancelled")


def test_a_tool_is_told_apart_from_the_model_around_it() -> None:
    done = turn(turn_latency=2000.0, at_commit=100.0, at_phrase=1900.0, at_speech=1990.0, tool=True)
    seen = told(replace(done, tools=(ToolUse("book", took=1500, at=200),)))
    assert seen["voicepipe_turn_wait_seconds_sum sip tools"] == 1.5
    assert seen["voicepipe_turn_wait_seconds_sum sip llm"] == pytest.approx(0.3)
