"""Causes of long waits and bad sound, by name. Pure.

The alerts of `pops/alerts/` name the same things from Prometheus' series; this is for who opens the dashboard.
"""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from voicepipe.config import PopConfig
from voicepipe.health import Health
from voicepipe.line import NetworkQuality
from voicepipe.observe.external_metrics import VllmLoad
from voicepipe.observe.turn_waits import TurnWaits

FEWEST, FEWEST_SHARE = 3, 0.05
"""Fewest late turns for which a cause is given, and their fewest share of the timed ones. One in twenty is what p95
allows."""
LONG_MS = 100.0
"""Milliseconds: a stage for which late turns waited so long on average is a cause."""
LOSSY_PERCENT, LOSSY_SHARE = 2.0, 0.1
"""Percent of packets whose loss harms a call; and the share of such calls for which a cause is given."""
FULL, TIGHT = 0.9, 0.5
"""How full a KV cache has to be; TIGHT is enough where replies wait. vLLM begins a reply once its whole prompt fits, so
with long prompts the cache never gets FULL. Where it does, vLLM takes a reply out, and it is no longer FULL. Between
the two, replies may also wait for vllm.args.max_num_seqs, which vLLM's metrics do not contain."""

What = Literal[
    "endpointing", "asr", "tools", "llm", "tts", "acknowledgement", "playout", "loss", "loop", "kv_cache", "engine",
]  # fmt: skip
STAGES: dict[What, str] = {
    "asr": "the recogniser's words come late; look at its load, and whether its GPU is shared",
    "tools": "tools are slow: a webhook, or a Python function",
    "llm": "the language model is slow; look at its load, and at its KV cache",
    "tts": "the voice is slow; look at its load, and whether its GPU is shared",
    "acknowledgement": "answers wait for the end of an acknowledgement; raise ladder.acknowledge_ms",
    "playout": "finished sound goes out late: the event loop, or the processor",
}
UNSURE = "the silence after callers' words: what they said left it open whether they had finished"


class DelayCause(msgspec.Struct, frozen=True):
    """A cause of late answers or of bad sound."""

    what: What
    says: str
    """For the operator: what was measured, and what to look at."""


class PopMeasurements(msgspec.Struct, frozen=True, kw_only=True):
    """The measurements of a PoP from which causes are found."""

    timed: int
    """Turns with a latency."""
    late: Sequence[TurnWaits]
    """Waits of the late ones, or of the newest of them."""
    late_count: int
    networks: Sequence[NetworkQuality]
    """Network quality of the calls in progress."""
    health: Health
    vllm: Sequence[VllmLoad] = ()
    """Load of vLLM's engines; none where there is no vLLM here."""


def delay_causes(seen: PopMeasurements, pop: PopConfig) -> list[DelayCause]:
    """The causes: those of the process first, then stages, the slowest first; empty: all is well."""
    return [*_of_process(seen, pop), *_of_turns(seen, pop), *_of_network(seen)]


def _of_process(seen: PopMeasurements, pop: PopConfig) -> Iterator[DelayCause]:
    for engine, seconds in seen.health.down.items():
        yield DelayCause("engine", f"The engine {engine} has not worked for {seconds} s; the log says why.")
    if (lag := seen.health.loop_lag_p99_ms) > pop.loop_lag_ms:
        says = (
            f"The event loop is {lag:.0f} ms late (p99): something blocks it, such as a Python tool, or there are more"
        )
        yield DelayCause("loop", f"{says} calls than the processor serves.")
    if full := [load for load in seen.vllm if load.kv_cache > (TIGHT if load.waiting else FULL)]:
        yield DelayCause("kv_cache", _of_cache(max(full, key=lambda load: load.kv_cache)))


def _of_cache(load: VllmLoad) -> str:
    says, more = f"vLLM's KV cache is {load.kv_cache:.0%} full", "lower pop.slots, or give it more memory"
    if not load.waiting:
        return f"{says}, the next reply may wait: {more}."
    if load.kv_cache > FULL:
        return f"{says}, too full for the next reply ({load.waiting:.0f} wait): {more}."
    says = f"{says}, and {load.waiting:.0f} replies wait. If the next prompt does not fit, {more}."
    return f"{says} If vLLM takes only {load.running:.0f} at a time, raise vllm.args.max_num_seqs."


def _of_turns(seen: PopMeasurements, pop: PopConfig) -> Iterator[DelayCause]:
    if seen.late_count < max(FEWEST, FEWEST_SHARE * seen.timed) or not seen.late:
        return
    means = {name: sum(getattr(waited, name) for waited in seen.late) / len(seen.late) for name in STAGES}
    late = f"{seen.late_count} of {seen.timed} turns were answered later than {pop.budget_ms} ms"
    # An acknowledgement is begun because something else is late: that is named first.
    named = sorted((name for name in STAGES if means[name] > LONG_MS),
                   key=lambda name: (name == "acknowledgement", -means[name]))  # fmt: skip
    for name in named:
        yield DelayCause(name, f"{late}. On average they waited {means[name]:.0f} ms for {name}: {STAGES[name]}.")
    if not named:
        yield DelayCause("endpointing", f"{late}. They waited for {UNSURE}.")


def _of_network(seen: PopMeasurements) -> Iterator[DelayCause]:
    known = [network.loss_percent for network in seen.networks if network.loss_percent is not None]
    lossy = [loss for loss in known if loss >= LOSSY_PERCENT]
    if lossy and len(lossy) >= LOSSY_SHARE * len(known):
        says = f"{len(lossy)} of {len(known)} calls lose {LOSSY_PERCENT:g} % or more of their packets"
        where = "look at the network between this PoP and its callers."
        yield DelayCause("loss", f"{says} (the worst {max(lossy):.1f} %): {where}")
