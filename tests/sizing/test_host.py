"""Whole hosts: what fits, what a turn takes, how many calls, and which way is advised."""

import math
from dataclasses import replace

import pytest

from voicepipe.sizing import advice as sentences
from voicepipe.sizing.constants import MOST_SEQUENCES
from voicepipe.sizing.gpu_models import GIB, GPUS, LINKS
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import Group
from voicepipe.sizing.options import Option, best, judged, options
from voicepipe.sizing.recognition import Nemotron, recogniser
from voicepipe.sizing.shapes import LLMS
from voicepipe.sizing.traffic import FirstPhrase, Traffic
from voicepipe.sizing.turn import most_calls, turn
from voicepipe.sizing.voices import voice

TURBO, KOKORO = recogniser("large-v3-turbo"), voice("kokoro")
COMPUTE_MS = 220
BRIEF = Traffic(phrase=FirstPhrase(8, 1.2), short_phrase_ms=0)
"""Of first phrases so short that Whisper and Kokoro answer some calls: there is something to choose from."""


def host(model: str, gpu: str, gpus: int = 1, dtype: str = "bf16", tensor: int = 1, **more: object) -> SizedHost:
    speech = {"asr": TURBO, "tts": KOKORO, "traffic": BRIEF}
    return SizedHost(Group(LLMS[model], dtype, GPUS[gpu], LINKS["nvlink"], tensor), gpus, **speech | more)  # type: ignore[arg-type]


def advice(ways: list[Option], calls: int, budget_ms: int) -> list[str]:
    return list(sentences.advice(ways, calls, budget_ms))


def found(
    model: str, gpu: str, gpus: int, calls: int, by: str = "nvlink", compute_ms: float = COMPUTE_MS
) -> list[Option]:
    dtypes = ["bf16", *(["fp8"] if GPUS[gpu].fp8_tflops else []), "awq4"]
    one = host(model, gpu, gpus).regrouped(link=LINKS[by])
    return [judged(way, calls, compute_ms) for way in options(one, dtypes)]


def test_memory_of_one_card() -> None:
    one = host("qwen3-8b", "h100")
    assert one.shared and one.fits
    taken = one.llm_fixed + one.speech_fixed + one.kv_room
    assert taken == one.usable
    assert 20 < (one.llm_fixed + one.speech_fixed) / GIB < 24
    assert one.kv_needed(64) == 64 * 2048 * 144 * 1024
    assert one.kv_needed(1) == 8192 * 144 * 1024, "one context as long as max_model_len"
    assert not host("llama-3.1-70b", "h100").fits


def test_recognition_and_synthesis_get_the_card_after_the_group() -> None:
    two = host("qwen3-8b", "h100", 2)
    assert not two.shared
    assert two.kv_room == host("qwen3-8b", "h100").kv_room + two.speech_fixed
    assert host("qwen3-8b", "h100", 2, tensor=2).shared
    at_8 = {gpus: turn(host("qwen3-8b", "h100", gpus), 8).compute for gpus in (1, 2)}
    assert at_8[2] < at_8[1]


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
    assert in_time == sorted(in_time, reverse=True) and sum(in_time) == most_calls(one, COMPUTE_MS)[0]


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
    calls, bound = most_calls(one, COMPUTE_MS)
    assert calls >= 4 and bound in {"recognition", "synthesis", "language"}
    assert turn(one, calls).compute_p95 <= COMPUTE_MS < turn(one, calls + 1).compute_p95
    assert most_calls(host("llama-3.1-70b", "h100"), COMPUTE_MS) == (0, "memory")
    assert most_calls(host("llama-3.1-70b", "h100", 2, "fp8"), 10) == (0, "latency")
    tight = host("llama-3.1-8b", "a10", 2)
    assert most_calls(tight, math.inf)[1] == "memory"


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


def test_one_card_is_enough() -> None:
    ways = found("qwen3-4b", "h100", 2, 4)
    chosen = best(ways, 4)
    assert chosen and chosen.name == "bf16, one GPU"
    said = advice(ways, 4, 300)
    assert said[0] == "It fits on one card: do not shard."
    assert said[1] == "Recognition and synthesis get GPU 1 to themselves."
    assert said[2].startswith("bf16, one GPU is advised: of the ways that answer 4 calls in time, ")
    assert f"It answers {chosen.calls} calls within 300 ms 19 times of 20" in said[2]


def test_one_card_is_enough_when_quantised() -> None:
    said = advice(found("qwen3-32b", "rtx-5090", 2, 1, compute_ms=2000), 1, 2000)
    assert said[0] == "It fits on one card quantised (awq4): do not shard."


def test_several_cards() -> None:
    ways = [way for way in found("llama-3.1-70b", "h100", 8, 1, compute_ms=400) if way.group.dtype == "bf16"]
    chosen = best(ways, 1)
    assert chosen and chosen.group.tensor in {2, 4, 8} and not ways[0].host.fits
    (said, *_) = advice(ways, 1, 300)
    assert said.startswith(f"It takes {chosen.group.tensor} cards in bf16 (tensor_parallel_size); of ")


def test_a_link_that_is_too_slow() -> None:
    ways = [way for way in found("llama-3.1-70b", "l40s", 8, 1, "ethernet") if way.group.tensor > 1]
    assert any("Ethernet is too slow for that" in line for line in advice(ways, 1, 300))


def test_nothing_fits() -> None:
    ways = found("llama-3.1-70b", "l4", 1, 1)
    assert best(ways, 1) is None
    (said,) = advice(ways, 1, 300)
    assert said.startswith("It does not fit: even in awq4 its weights take 37 GiB, recognition and synthesis ")
    assert "1 x L4 have 22 GiB; take 4 such GPUs" in said


def test_more_gpus_are_advised_than_there_are() -> None:
    (said,) = advice(found("llama-3.1-70b", "rtx-4090", 2, 1, "pcie"), 1, 300)
    assert "take 4 such GPUs" in said


def test_a_card_would_do_but_more_are_faster() -> None:
    said = advice(found("llama-3.1-70b", "a100-80", 4, 4, compute_ms=400), 4, 480)
    assert " cards in awq4 (tensor_parallel_size); of " in said[0] and said[0].endswith(" are all-reduces by NVLink.")


def test_what_answers_no_call_is_not_advised() -> None:
    """The nearest is told, what is the longest part, and what would help."""
    ways = found("llama-3.1-70b", "a100-80", 4, 4)
    assert all(way.calls == 0 for way in ways)
    said = advice(ways, 4, 300)
    assert said[0].startswith("Not even one call is answered within 300 ms 19 times of 20, so that none of these ways")
    assert "The nearest is awq4, TP " in said[0] and "language has the largest part of it" in said[0]
    assert said[1].startswith("Calls in time with one change from awq4, TP ") and " 0" not in said[1]
    assert not any("tensor_parallel_size" in line for line in said)


def test_what_answers_a_call_goes_before_what_answers_none() -> None:
    """AWQ on two cards is faster with 8 calls than on four, and answers none of them in time; four answer one."""
    ways = found("llama-3.1-70b", "h100", 4, 8)
    chosen = best(ways, 8)
    assert chosen and (chosen.name, chosen.calls) == ("awq4, TP 4", 1)
    assert "With 8 calls awq4, TP 2 is faster, but it answers none of them in time." in advice(ways, 8, 300)


def test_among_those_that_answer_calls_it_is_what_a_turn_takes() -> None:
    """Each way is worse than what is advised in one of both: what a turn takes, or how many calls."""
    for model, gpu, gpus, calls in (
        ("llama-3.1-70b", "b200", 4, 8),
        ("qwen3-32b", "h100", 4, 12),
        ("qwen3-8b", "h100", 4, 36),
    ):
        ways = [way for way in found(model, gpu, gpus, calls) if way.calls]
        chosen = best(ways, calls)
        assert chosen
        late = [way for way in ways if way.turn.compute_p95 < chosen.turn.compute_p95 and way.calls > chosen.calls]
        assert chosen.calls >= calls or not late


def test_too_many_calls() -> None:
    ways = found("qwen3-8b", "h100", 2, 200)
    chosen = best(ways, 200)
    assert chosen
    said = advice(ways, 200, 300)
    hosts = math.ceil(200 / chosen.calls)
    (line,) = (line for line in said if line.startswith("200 calls are too many for one such PoP"))
    assert line.endswith(f"That would be {hosts} such hosts with {2 * hosts} GPUs.")
    assert any(line.startswith(f"Calls in time with one change from {chosen.name}: Nemotron") for line in said)


def test_too_many_calls_for_one_pop_and_not_for_its_host() -> None:
    ways = found("qwen3-4b", "h100", 8, 16)
    chosen = best(ways, 16)
    assert chosen and chosen.calls < 16 <= chosen.host_calls
    assert any(line.endswith("That would be several on this host.") for line in advice(ways, 16, 300))


def test_of_many_changes_the_four_largest_are_told() -> None:
    ways = found("qwen3-8b", "h100", 1, 1)
    (line,) = (line for line in advice(ways, 1, 300) if line.startswith("Calls in time with one change from "))
    *changes, last = line.removesuffix(".").split(": ")[1].split(", ")
    assert len(changes) == 3 and last.endswith(" (the four largest of 7)")
    few = judged(host("qwen3-0.6b", "h100", 2, asr=Nemotron(), dtype="awq4"), 1, COMPUTE_MS)
    assert not any("largest" in line for line in advice([few], 1, 300))


def test_a_card_that_stays_idle() -> None:
    """It is said of three that they answer no more than two."""
    assert "1 of the host's 3 GPUs stays idle." in advice(found("qwen3-8b", "h100", 3, 1), 1, 300)
    assert not any("idle" in line for n in (1, 2, 4) for line in advice(found("qwen3-8b", "h100", n, 1), 1, 300))


def test_more_cards_than_one_pop_uses() -> None:
    assert "The host has GPUs for 4 such PoPs" in advice(found("qwen3-4b", "h100", 8, 4), 4, 300)[-1]


@pytest.mark.parametrize(("calls", "answered", "mib"), [(1, 64, 1268), (64, 64, 20_276), (64, 9, 2852), (64, 0, 1268)])
def test_the_cache_that_is_configured(calls: int, answered: int, mib: int) -> None:
    """For the calls that it answers of those asked for, a tenth more, or one context as long as any."""
    option = replace(judged(host("qwen3-8b", "h100"), calls, COMPUTE_MS), calls=answered)
    assert option.kv_cache_bytes(calls) == mib * 2**20


def test_a_host_that_answers_more_than_was_asked_for() -> None:
    ways = found("qwen3-8b", "h100", 1, 1)
    chosen = best(ways, 1)
    assert chosen and chosen.calls > 1
    (line,) = (line for line in advice(ways, 1, 300) if "is advised" in line)
    assert f"It answers {chosen.calls} calls within 300 ms 19 times of 20 (for all {chosen.calls}: --calls " in line
    again = judged(chosen.host, chosen.calls, COMPUTE_MS)
    (line,) = (line for line in advice([again], chosen.calls, 300) if "is advised" in line)
    assert "--calls" not in line, "all are asked for"
