"""What calls ask of the engines."""

from dataclasses import dataclass

LATER_PHRASE_S = 2.6
"""Of speech, of each phrase of a reply but the first."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """Of one call."""

    turn_s: float = 8.0
    """From one turn to the next."""
    speaking: float = 0.5
    """Share of the time in which the caller does."""
    spoken: float = 0.5
    """Share of the time for which speech is made."""
    partial_s: float = 0.5
    """An utterance is read again after so much more of it, where the recogniser reads windows."""
    window_s: float = 10.0
    """What Whisper reads in one go."""
    utterance_s: float = 3.0
    silences: float = 1.5
    """In a turn, that might be its end: each is a final pass, a prompt and a first phrase, which may be for nothing."""
    context_tokens: int = 2048
    """Instructions and what was said, kept in the prefix cache; ten minutes of talk."""
    new_tokens: int = 40
    """Of a prompt, that the prefix cache does not hold."""
    reply_tokens: int = 60
    phrase_tokens: int = 8
    """Until the first phrase is whole."""
    phrase_s: float = 1.2
    """Of speech in it."""

    def ends(self, calls: int) -> float:
        """Silences that might be a turn's end, a millisecond, of so many calls."""
        return calls * self.silences / self.turn_s / 1000

    def wasted(self, calls: int) -> float:
        """Those of them, a millisecond, upon which a reply is begun for nothing."""
        return self.ends(calls) * (1 - 1 / self.silences)
