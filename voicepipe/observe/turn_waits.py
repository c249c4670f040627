"""What a caller waited for: a turn's latency, divided by stage. Pure."""

from collections.abc import Iterable, Sequence

import msgspec

from voicepipe.conversation.events import ToolUse
from voicepipe.conversation.timing import TurnSummary

AT_ONCE_MS = 1.0
"""Milliseconds: a turn that is confirmed so soon after its words waited for them, and not for silence: words that end a
turn do so in the same step of the event loop."""


class TurnWaits(msgspec.Struct, frozen=True):
    """The waits of a caller in one turn, in milliseconds of its critical path, which add up to its latency. Time that a
    stage took while the caller waited for something else is in none of them: a reply that was ready at *commit* cost no
    wait, however long the model took."""

    endpointing: float
    """Wait for the silence that ends the turn."""
    asr: float
    """Wait for the recogniser's words, once they were asked for, where they came after that silence."""
    tools: float
    """From *commit* to the first phrase, as long as tools ran."""
    llm: float
    """From *commit* to the first phrase, as long as none ran."""
    tts: float
    """From there to its sound."""
    acknowledgement: float
    """From there to the first audible packet, where an acknowledgement was begun: it is heard to its end."""
    playout: float
    """From there to the first audible packet, where none was."""


def waits(record: TurnSummary, tools: Iterable[ToolUse] = ()) -> TurnWaits | None:
    """The waits of a turn. `tools`: those that the reply had run. None: the turn was not timed."""
    latency = record.turn_latency
    if latency is None or record.at_commit is None:
        return None
    commit = min(latency, record.at_commit)
    asr = 0.0
    if record.at_words is not None and commit - record.at_words <= AT_ONCE_MS:
        asr = max(0.0, min(record.asr or 0.0, commit))
    phrase = min(latency, max(commit, record.at_phrase or 0.0))
    speech = min(latency, max(phrase, record.at_speech or 0.0))
    runs = [(use.at, phrase if use.took is None else use.at + use.took) for use in tools if use.at is not None]
    running = min(_union(runs, commit, phrase), phrase - commit)  # Sums of floats may come out a hair over.
    return TurnWaits(
        endpointing=commit - asr,
        asr=asr,
        tools=running,
        llm=phrase - commit - running,
        tts=speech - phrase,
        acknowledgement=latency - speech if record.ladder == "acknowledge" else 0.0,
        playout=0.0 if record.ladder == "acknowledge" else latency - speech,
    )


def _union(spans: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Length of the time from `begin` to `end` that is in one or several of the spans."""
    covered = 0.0
    for start, stop in sorted(spans):
        start = max(start, begin)
        stop = min(stop, end)
        if stop > start:
            covered, begin = covered + stop - start, stop
    return covered
