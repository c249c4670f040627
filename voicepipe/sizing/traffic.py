"""What calls ask of the engines."""

from dataclasses import dataclass, replace

LATER_PHRASE_S = 2.6
"""Of speech, of each phrase of a reply but the first."""
WORDS_A_MINUTE = 160
"""Of a voice. Assumption: English conversation has 150 to 180, read books 150 to 160."""


@dataclass(frozen=True, slots=True)
class FirstPhrase:
    """The first of a reply."""

    tokens: int
    """Until it is whole; the beginning of the word after it is one of them."""
    speech_s: float


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
    phrase: FirstPhrase = FirstPhrase(8, 2.5)
    """As the call path cuts everyday replies, in the mean: `tests/sizing/test_turn.py` has them."""
    short_phrase: FirstPhrase = FirstPhrase(6, 1.7)
    """The same where there is no time, or with `ladder.first_phrase = "short"`."""
    sure_ms: float = 140
    """Commit: so long after the voice's end (`endpoint.sure_ms`), if the last words are known by then."""
    short_phrase_ms: int = 80
    """The rung: so long after commit a first phrase that is not whole is cut short; 0: never
    (`ladder.short_phrase_ms`)."""

    @property
    def is_cut_short(self) -> bool:
        """Each first phrase is, whether there is time or not (`ladder.first_phrase = "short"`)."""
        return self.phrase == self.short_phrase

    def cut_short(self) -> "Traffic":
        return replace(self, phrase=self.short_phrase)

    def ends(self, calls: int) -> float:
        """Silences that might be a turn's end, a millisecond, of so many calls."""
        return calls * self.silences / self.turn_s / 1000

    def phrases(self, calls: int) -> float:
        """Of replies that are spoken, a millisecond, each as long as a later one."""
        return calls * self.spoken / LATER_PHRASE_S / 1000

    def tokens(self, calls: int) -> float:
        """That the language model writes, a millisecond: of replies, and of first phrases for nothing."""
        return calls * (self.reply_tokens + (self.silences - 1) * self.phrase.tokens) / self.turn_s / 1000

    def wasted(self, calls: int) -> float:
        """Those of them, a millisecond, upon which a reply is begun for nothing."""
        return self.ends(calls) * (1 - 1 / self.silences)
