"""What a caller waited for: a turn's latency, told apart by stage. Pure."""

import msgspec

from voicepipe.turn.timing import TurnSummary

AT_ONCE_MS = 1.0
"""A turn that is confirmed so soon after its words were there waited for them, and not for silence: words that end a
turn do so in the same step of the event loop."""


class Waits(msgspec.Struct, frozen=True):
    """Milliseconds of one turn's critical path. They add up to its latency.

    What a stage did while the caller waited for something else is in none of them: a reply that was ready at *commit*
    cost no wait, however long the model took.
    """

    endpointing: float
    """For the silence that ends the turn."""
    asr: float
    """For the recogniser's words, once they were asked for, where they came after that silence."""
    tools: float
    """From *commit* to the first phrase, where tools ran before it; the model's own time is in it."""
    llm: float
    """From *commit* to the first phrase, where none ran."""
    tts: float
    """From there to its sound."""
    playout: float
    """From there to the first audible packet: behind an acknowledgement that was still being said, for instance."""


def waits(record: TurnSummary) -> Waits | None:
    """None: the turn was not timed."""
    latency = record.turn_latency
    if latency is None or record.at_commit is None:
        return None
    commit = min(latency, record.at_commit)
    asr = 0.0
    if record.at_words is not None and commit - record.at_words <= AT_ONCE_MS:
        asr = max(0.0, min(record.asr or 0.0, commit))
    phrase = min(latency, max(commit, record.at_phrase or 0.0))
    speech = min(latency, max(phrase, record.at_speech or 0.0))
    thinking = phrase - commit
    return Waits(
        endpointing=commit - asr,
        asr=asr,
        tools=thinking if record.tool else 0.0,
        llm=0.0 if record.tool else thinking,
        tts=speech - phrase,
        playout=latency - speech,
    )
