"""Sentences on which way to take, and why."""

import math

from tests.sizing.hosts import COMPUTE_MS, found, host
from voicepipe.sizing import advice as sentences
from voicepipe.sizing.options import Option, best, evaluated
from voicepipe.sizing.recognition import Nemotron


def advice(ways: list[Option], calls: int, budget_ms: int) -> list[str]:
    return list(sentences.advice(ways, calls, budget_ms))


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
    few = evaluated(host("qwen3-0.6b", "h100", 2, asr=Nemotron(), dtype="awq4"), 1, COMPUTE_MS)
    assert not any("largest" in line for line in advice([few], 1, 300))


def test_a_card_that_stays_idle() -> None:
    """It is said of three that they answer no more than two."""
    assert "1 of the host's 3 GPUs stays idle." in advice(found("qwen3-8b", "h100", 3, 1), 1, 300)
    assert not any("idle" in line for n in (1, 2, 4) for line in advice(found("qwen3-8b", "h100", n, 1), 1, 300))


def test_more_cards_than_one_pop_uses() -> None:
    assert "The host has GPUs for 4 such PoPs" in advice(found("qwen3-4b", "h100", 8, 4), 4, 300)[-1]


def test_a_host_that_answers_more_than_was_asked_for() -> None:
    ways = found("qwen3-8b", "h100", 1, 1)
    chosen = best(ways, 1)
    assert chosen and chosen.calls > 1
    (line,) = (line for line in advice(ways, 1, 300) if "is advised" in line)
    assert f"It answers {chosen.calls} calls within 300 ms 19 times of 20 (for all {chosen.calls}: --calls " in line
    again = evaluated(chosen.host, chosen.calls, COMPUTE_MS)
    (line,) = (line for line in advice([again], chosen.calls, 300) if "is advised" in line)
    assert "--calls" not in line, "all are asked for"
