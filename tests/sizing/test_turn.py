"""What a turn takes under calls, and when its first sound comes under the first phrase's deadline."""

import math
from dataclasses import replace
from statistics import NormalDist

import pytest

from tests.sizing.hosts import COMPUTE_MS, host
from voicepipe.sizing.constants import MOST_SEQUENCES
from voicepipe.sizing.gpu_models import GPUS, LINKS
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import ParallelGroup
from voicepipe.sizing.recognition import Nemotron, recogniser
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.traffic import FirstPhrase, Traffic
from voicepipe.sizing.turn import PhraseTimes, TurnEstimate, capacity, first_sound, turn
from voicepipe.sizing.voices import voice


def phrase_times(whole: float, sounds: float, waits: float = 0.0) -> PhraseTimes:
    return PhraseTimes(NormalDist(whole, waits), NormalDist(sounds, 0.0))


@pytest.mark.parametrize(
    ("deadline_ms", "written", "sounds"), [(100, 100, 80), (math.inf, 100, 80), (90, 90, 50), (10, 70, 50)]
)
def test_a_late_phrase_is_cut_at_the_deadline_or_when_it_has_words_enough(
    deadline_ms: float, written: float, sounds: float
) -> None:
    """One that is whole by then is spoken as it is. Without waiting all turns take the same."""
    assert first_sound(phrase_times(100, 80), phrase_times(70, 50), deadline_ms) == (written, sounds, written + sounds)


def test_with_one_kind_of_phrase_waits_add_up_as_chance_has_it() -> None:
    both = PhraseTimes(NormalDist(100, 30), NormalDist(80, 40))
    for deadline_ms in (math.inf, -math.inf):
        *_, p95 = first_sound(both, both, deadline_ms)
        assert p95 == pytest.approx(180 + 1.645 * 50, abs=1)


def test_what_was_whole_just_before_the_deadline_is_the_slowest() -> None:
    """Half of the turns are written in time, and the voice takes long for them; later ones are cut."""
    *_, p95 = first_sound(phrase_times(100, 80, waits=1), phrase_times(70, 20, waits=1), deadline_ms=100)
    assert 179 < p95 <= 180


def at(calls: int, tts: str, traffic: Traffic, asr: str = "nemotron") -> TurnEstimate:
    group = ParallelGroup(LLMS["llama-3.1-8b"], "bf16", GPUS["h100"], LINKS["nvlink"])
    return turn(SizedHost(group, 1, recogniser(asr), voice(tts), traffic=traffic), calls)


@pytest.mark.parametrize("tts", ["kokoro", "neutts"])
def test_the_deadline_never_makes_a_turn_longer(tts: str) -> None:
    for calls in range(1, 33, 4):
        never, usual, at_once = (at(calls, tts, Traffic(short_phrase_ms=ms)).compute_p95 for ms in (0, 80, 1))
        assert at(calls, tts, Traffic().cut_short()).compute_p95 <= at_once <= usual <= never


def test_the_deadline_counts_from_commit_and_that_waits_for_the_last_words() -> None:
    """60 ms after the engines began, or when the words are there."""
    slow = replace(Traffic(short_phrase_ms=1), phrase=FirstPhrase(100, 2.5), short_phrase=FirstPhrase(1, 1.7))
    soon, late = at(1, "neutts", slow), at(8, "neutts", slow, asr="large-v3-turbo")
    assert soon.asr < 60 < late.asr
    assert soon.asr + soon.first_token + soon.first_phrase == pytest.approx(60 + 1 + soon.token / 2)
    assert late.first_token + late.first_phrase == pytest.approx(max(late.first_token, 1 + late.token / 2))


def test_replies_for_nothing_are_long() -> None:
    """They are made before commit, where nobody hurries: the deadline takes no work off the GPU."""
    never, at_once = (at(16, "neutts", Traffic(short_phrase_ms=ms)) for ms in (0, 1))
    assert at_once.busy == never.busy and at_once.slow == never.slow and at_once.replies == never.replies


@pytest.mark.parametrize("ms", [0, 1, 80])
def test_where_all_are_short_the_deadline_has_no_effect(ms: int) -> None:
    short = Traffic().cut_short()
    assert short.is_cut_short and not Traffic().is_cut_short
    for tts in ("kokoro", "neutts"):
        assert at(8, tts, replace(short, short_phrase_ms=ms)) == at(8, tts, short)


def test_replies_for_nothing_are_short_where_all_are() -> None:
    usual, short = (at(16, "neutts", traffic) for traffic in (Traffic(), Traffic().cut_short()))
    assert short.busy["tts"] < usual.busy["tts"] and short.replies < usual.replies


def test_what_never_comes_is_cut_by_no_deadline() -> None:
    group = ParallelGroup(LLMS["llama-3.1-8b"], "bf16", GPUS["h100"], LINKS["nvlink"])
    host = SizedHost(group, 1, Nemotron(), voice("kokoro"))
    assert turn(host, 200).compute == turn(host, 200).compute_p95 == math.inf


def test_a_recogniser_that_cannot_keep_up_is_not_the_language_models_fault() -> None:
    found = at(64, "neutts", Traffic(), asr="large-v3")
    assert found.asr == found.compute == math.inf and math.isfinite(found.first_phrase)


def test_64_calls_are_three_to_four_replies_at_a_time() -> None:
    """60 tokens every 8 s are a duty of 5 %."""
    assert 3 <= turn(host("qwen3-8b", "h100", 2, traffic=Traffic(silences=1)), 64).replies <= 4


def test_a_turn_on_an_h100() -> None:
    """Each stage alone is as published; together they fit the budget for a call, and more calls take longer."""
    one = turn(host("qwen3-8b", "h100"), 1)
    assert 20 < one.asr < 90 and 8 < one.first_token < 30 and 45 < one.first_phrase < 75 and 30 < one.tts < 60
    assert one.compute == one.asr + one.first_token + one.first_phrase + one.tts
    assert 80 + one.compute_p95 < 300
    computes = [turn(host("qwen3-8b", "h100"), calls).compute_p95 for calls in (1, 2, 4, 8, 16, 32)]
    assert computes == sorted(computes)


@pytest.mark.parametrize("mps", [False, True])
def test_with_more_calls_fewer_are_in_time(mps: bool) -> None:
    """What fits is found by halving, so that no number may fit behind one that does not."""
    one = host("llama-3.1-8b", "h100", asr=recogniser("nemotron"), tts=voice("neutts"), mps=mps)
    in_time = [turn(one, calls).compute_p95 <= COMPUTE_MS for calls in range(1, 81)]
    assert in_time == sorted(in_time, reverse=True) and sum(in_time) == capacity(one, COMPUTE_MS)[0]


def test_a_card_for_speech_leaves_the_model_alone() -> None:
    one, two = (host("llama-3.1-8b", "h100", gpus, asr=recogniser("nemotron")) for gpus in (1, 2))
    assert turn(two, 16).slow["llm"] == 1 < turn(one, 16).slow["llm"]
    assert turn(two, 16).slow["asr"] > 1, "the voice shares its card"


def test_sharing_one_card_costs_what_it_cost_others() -> None:
    """Unmute's speech takes 450 ms from a card of its own and 750 from one that all share."""
    alone, shared = (turn(host("llama-3.1-8b", "l40s", gpus), 8).tts for gpus in (2, 1))
    assert 1.1 < shared / alone < 2.0


def test_whisper_cannot_read_64_calls_twice_a_second() -> None:
    """64 passes a second take 6 to 13 s of a GPU: partials are left out long before, and finals alone keep it busy."""
    assert 0.9 < turn(host("qwen3-8b", "rtx-4090", 2, "awq4"), 64).busy["asr"] < 3


def test_a_stage_keeps_up_with_fewer_calls_on_a_gpu_that_a_language_model_shares() -> None:
    one, two = (turn(host("qwen3-8b", "h100", gpus), 12).busy for gpus in (1, 2))
    assert one["asr"] > two["asr"] and one["tts"] > two["tts"]


def test_how_many_calls() -> None:
    one = host("qwen3-8b", "h100", 2)
    calls, bound = capacity(one, COMPUTE_MS)
    assert calls >= 4 and bound in {"recognition", "synthesis", "language"}
    assert turn(one, calls).compute_p95 <= COMPUTE_MS < turn(one, calls + 1).compute_p95
    assert capacity(host("llama-3.1-70b", "h100"), COMPUTE_MS) == (0, "memory")
    assert capacity(host("llama-3.1-70b", "h100", 2, "fp8"), 10) == (0, "latency")
    tight = host("llama-3.1-8b", "a10", 2)
    assert capacity(tight, math.inf)[1] == "memory"


def test_overload_takes_for_ever_and_says_so() -> None:
    assert turn(host("qwen3-8b", "l4", 1, "awq4"), 200).compute == math.inf


def test_no_stage_that_cannot_keep_up_is_finite() -> None:
    """Workers of one GPU add no capacity; a language model is overloaded when replies come faster than they end."""
    two = host("qwen3-8b", "h100", 2)
    late = next(calls for calls in range(1, 1024) if turn(two, calls).busy["tts"] >= 1)
    assert turn(two, late).tts == math.inf and math.isfinite(turn(two, late - 1).tts)
    slow = host("llama-3.1-70b", "a100-80", 8, tensor=4)
    assert turn(slow, 1000).replies == MOST_SEQUENCES and turn(slow, 1000).first_token == math.inf


def test_replies_last_longer_beside_others() -> None:
    """More of them meet then."""
    one = host("qwen3-8b", "h100")
    alone = turn(host("qwen3-8b", "h100", 2), 8)
    slow = turn(one, 8).token / alone.token
    assert slow > 1.1 and turn(one, 8).replies == pytest.approx(slow * alone.replies, rel=0.1)
