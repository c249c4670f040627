"""Holds one call as planned: waits for the greeting, asks, listens, interrupts, hangs up."""

import asyncio
import time
from collections.abc import Callable

import numpy as np

from latency_probes import clips, sound
from latency_probes.caller import Caller
from latency_probes.clips import Speech
from latency_probes.failed_call import CallFailed
from latency_probes.guests import Conversation
from latency_probes.plan import CallPlan, Over, Turn
from latency_probes.records import MISSED_S, CallRecord, Said
from latency_probes.sound import rng_for
from latency_probes.timeline import BLOCK, Reply, Timeline, voiced_span
from voicepipe.base.errors import ProbeError

POLL_S = 0.02
GREETING_S = 2.0
"""A server that has not begun to greet by then does not greet."""
REPLY_S = 30.0
"""No reply or greeting is waited for longer than this."""
SETTLED_S = 0.3
WATCH_S = 2.0
"""After something over a reply: how long a needless answer to it, or the rightful one, may take to begin."""
PAUSE_MS = (300, 900)
OVER_MS = (500, 1200)
"""How far into the audible reply it is interrupted."""
ECHO_S = 4.0


async def converse(caller: Caller, plan: CallPlan, seed: int, dial_s: float | None = None) -> CallRecord:
    """Place the call and hold it; a call that fails says so in `error` and keeps what was said before. `dial_s`: it is
    given up where it is not up so many seconds after it was asked for."""
    record = CallRecord(plan, caller.timeline)
    # Clips are decoded before the call so that nothing but sending and receiving happens while it lasts.
    speeches = [await asyncio.to_thread(clips.speech, turn.utterance, seed) for turn in plan.turns]
    overs = [await asyncio.to_thread(over_speech, turn.over, seed) for turn in plan.turns]
    rng = rng_for(seed, f"call {plan.number}")
    try:
        await dial(caller, dial_s)
        await greeting_over(caller)
        if plan.guest:
            await visit(caller, record, Conversation(plan.guest, plan.voice), seed)
        for turn, speech, over in zip(plan.turns, speeches, overs, strict=True):
            await asyncio.sleep(rng.uniform(*PAUSE_MS) / 1000)
            into = rng.uniform(*OVER_MS) / 1000
            record.said.append(await take_turn(caller, turn, speech, over, into))
    except ProbeError as error:
        record.error = error
    finally:
        record.lag_s = caller.worst_lag()
        try:
            await caller.hang_up()
        except ProbeError as error:
            record.error = error
    return record


async def dial(caller: Caller, seconds: float | None) -> None:
    """As `Caller.dial`, and raises CallFailed where it takes longer than this."""
    try:
        async with asyncio.timeout(seconds):
            await caller.dial()
    except TimeoutError:
        raise CallFailed(f"the call is not up within {seconds:g} s: look at the network between", "connect") from None


async def visit(caller: Caller, record: CallRecord, guest: Conversation, seed: int) -> None:
    """What the guest says next is decided by what the agent has said."""
    line, rng = caller.timeline, rng_for(seed, f"guest {record.plan.number}")
    said_at = 0.0
    try:
        while turn := guest.next([reply.text for reply in heard_since(line, said_at)], line):
            speech = await asyncio.to_thread(clips.speech, turn.utterance, seed)
            over = await asyncio.to_thread(over_speech, turn.over, seed)
            await asyncio.sleep(rng.uniform(*PAUSE_MS) / 1000)
            said_at = time.monotonic()
            into = rng.uniform(*OVER_MS) / 1000
            record.said.append(await take_turn(caller, turn, speech, over, into))
    finally:
        record.visit = guest.end(line)


def heard_since(line: Timeline, second: float) -> list[Reply]:
    """The replies that became audible after this second."""
    return [reply for reply in line.replies.values() if reply.first_audible and reply.first_audible.arrived > second]


def over_speech(over: Over | None, seed: int) -> Speech | None:
    """The sound that comes over the reply; none for echo, which is known only when the reply is."""
    if over is None or over.sound == "echo":
        return None
    if over.clip:
        return clips.speech(over.clip, seed)
    pcm = sound.SOUNDS[over.sound](rng_for(seed, over.id))
    return Speech(pcm, voiced_span(pcm))


async def greeting_over(caller: Caller) -> None:
    """Wait until the greeting has been played, if there is one."""
    line = caller.timeline
    await until(caller, lambda: bool(line.of_type("response.created")), GREETING_S)
    await until(caller, lambda: not line.busy() and time.monotonic() > line.play_end + SETTLED_S, REPLY_S)


async def take_turn(caller: Caller, turn: Turn, speech: Speech, over: Speech | None, into: float) -> Said:
    """Say `speech`, listen to the answer, and put `over` on it, `into` seconds after it became audible."""
    line = caller.timeline
    start = caller.say(speech.pcm)
    last = start + speech.voiced[1] - 1
    await until(caller, lambda: len(line.sent) * BLOCK > last, REPLY_S)
    if len(line.sent) * BLOCK <= last:
        raise CallFailed("the server ended the call before the caller had finished", "ended")
    over_start, voice_end = 0, last
    if turn.over and await until(caller, lambda: audible_for(line, last) > into, MISSED_S + into):
        over_start, over = await interrupt(caller, turn.over, over)
        voice_end = min(over_start + over.voiced[1], len(line.sent) * BLOCK) - 1
    if turn.kind == "soak":
        await until(caller, lambda: line.answer(after=line.sent_at(last)) is not None, MISSED_S)
    else:
        await until(caller, lambda: settled(line, last, voice_end, bool(turn.over)), REPLY_S)
    return Said(turn, speech, start, time.monotonic(), over_start, over)


def audible_for(line: Timeline, last: int) -> float:
    """Seconds for which the answer to what ended at sample `last` has been audible."""
    answer = line.answer(after=line.sent_at(last))
    return time.monotonic() - answer.first_audible.played if answer and answer.first_audible else 0.0


async def interrupt(caller: Caller, over: Over, speech: Speech | None) -> tuple[int, Speech]:
    """Put something over the reply; returns where it begins in what is sent, and what it was."""
    if speech is None:
        delay = rng_for(0, over.id).uniform(*sound.ECHO_DELAY_MS)
        start = len(caller.timeline.sent) * BLOCK
        caller.echo(delay)
        await asyncio.sleep(ECHO_S)
        caller.echo(None)
        length = len(caller.timeline.sent) * BLOCK - start
        return start, Speech(np.empty(0, np.int16), (0, max(length, 1)))
    start = caller.say(speech.pcm)
    await until(caller, lambda: len(caller.timeline.sent) * BLOCK >= start + speech.voiced[1], REPLY_S)
    return start, speech


def settled(line: Timeline, last: int, voice_end: int, watched: bool) -> bool:
    """Whether there is nothing more to be heard: the answer is over, or was not given in time."""
    now = time.monotonic()
    if line.busy() or now < line.play_end + SETTLED_S:
        return False
    if watched:
        return now > line.sent_at(voice_end) + WATCH_S
    return line.answer(after=line.sent_at(last)) is not None or now > line.sent_at(last) + MISSED_S


async def until(caller: Caller, condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for `condition`, at most `seconds` or until the call ends; returns whether it came true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if caller.hung_up() or time.monotonic() > deadline:
            return condition()
        await asyncio.sleep(POLL_S)
    return True
