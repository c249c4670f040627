"""What a caller waited for: a turn's latency, told apart by stage. Pure."""

import msgspec

from voicepipe.turn.timing import TurnSummary

AT_ONCE_MS = 10.0
"""A turn that is confirmed so soon after its words were there waited for them, and not for silence."""


class Waits(msgspec.Struct, frozen=True):
    """Milliseconds of one turn's critical path. They add up to its latency.

    What a stage did while the caller waited for something else is in none of them: a reply that was ready at *commit*
    cost no wait, however long the model took.
    """

    endpointing: float
    """For the silence that ends the turn."""
    asr: float
    """For the recogniser's words, past which no silence had to be waited for."""
    llm: float
    """From *commit* to the first phrase; tools that ran for it included."""
    tts: float
    """From there to its sound."""
    playout: float
    """From there to the first audible packet."""


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
    return Waits(endpointing=commit - asr, asr=asr, llm=phrase - commit, tts=speech - phrase, playout=latency - speech)
