"""What callers of the benches do, by the probes' caller: they listen to a greeting, or ask one question."""

import asyncio

from latency_probes import clips
from latency_probes.clips import Speech, Utterance
from latency_probes.conversation import take_turn, until
from latency_probes.measure import greeting_ms, judge_call
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller, idle_frames
from latency_probes.records import CallRecord, TurnResult
from voicepipe.base.errors import ProbeError

WORDS = "when do you open on sunday"
GREETS, LISTENS = "greets", "listens"
AGENTS = {GREETS: f'name = "{GREETS}"\ngreeting = "Good day."\n', LISTENS: f'name = "{LISTENS}"\n'}
"""One that speaks first, and one that does not: its callers ask at once."""
ENGINES = f"""
[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
[scripted]
hears = ["{WORDS}"]
"""
NOISE, SEED = "quiet", 1
GREETING_S = 5.0


async def question() -> tuple[Utterance, Speech]:
    """What callers say. Reading it takes time that a call's blocks would wait for; so does the room's noise."""
    said = next(item for item in clips.load(["finished"]) if (item.text, item.noise) == (WORDS, NOISE))
    idle_frames(NOISE, SEED)
    return said, await asyncio.to_thread(clips.speech, said, SEED)


async def greeted(caller: RealtimeCaller) -> float:
    """Milliseconds from asking for a call to its greeting's first sound; then it is hung up. Raises ProbeError."""
    record = CallRecord(CallPlan(1, NOISE, ()), caller.timeline)
    try:
        await caller.dial()
        await until(caller, lambda: greeting_ms(record) is not None, GREETING_S)
    finally:
        await caller.hang_up()
    took = greeting_ms(record)
    if took is None:
        raise ProbeError(f"no greeting is heard within {GREETING_S:.0f} s")
    return took


async def asked(
    caller: RealtimeCaller, said: tuple[Utterance, Speech], turns: int = 1, *, heard_out: bool = False
) -> list[TurnResult]:
    """So many turns of one call, each judged; then the caller hangs up. `heard_out`: only once a reply is over, and the
    server has told what it took. Raises ProbeError."""
    utterance, speech = said
    turn = Turn("finished" if heard_out else "soak", utterance)
    record = CallRecord(CallPlan(1, NOISE, (turn,) * turns), caller.timeline)
    try:
        await caller.dial()
        for _ in range(turns):
            record.said.append(await take_turn(caller, turn, speech, None, 0.0))
    finally:
        await caller.hang_up()
    return await asyncio.to_thread(judge_call, record, {})


def straight(url: str, key: str, agent: str) -> RealtimeCaller:
    """Who calls a PoP, or a directory that relays, at its own address."""
    return RealtimeCaller(url, NOISE, SEED, key, agent)
