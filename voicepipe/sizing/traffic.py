"""The work that calls make for the engines."""

from dataclasses import dataclass, replace

LATER_PHRASE_S = 2.6
"""Seconds of speech in each phrase of a reply except the first."""
WORDS_A_MINUTE = 160
"""Words that a voice says in a minute. Assumption: English conversation has 150 to 180, read books 150 to 160."""


@dataclass(frozen=True, slots=True)
class FirstPhrase:
    """The first phrase of a reply."""

    tokens: int
    """Tokens until it is whole; the beginning of the word after it is one of them."""
    speech_s: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """The work that one call makes for the engines."""

    turn_s: float = 8.0
    """From one turn to the next."""
    speaking: float = 0.5
    """Part of the time in which the caller speaks."""
    spoken: float = 0.5
    """Part of the time for which speech is made."""
    partial_s: float = 0.5
    """Seconds of an utterance after which it is read again, where the recogniser reads windows."""
    window_s: float = 10.0
    """Seconds that Whisper reads in one go."""
    utterance_s: float = 3.0
    silences: float = 1.5
    """Silences in a turn that might be its end. Each causes a final pass, a prompt and a first phrase; all but the last
    are made for nothing."""
    context_tokens: int = 2048
    """Instructions and earlier turns, kept in the prefix cache; ten minutes of talk."""
    new_tokens: int = 40
    """Tokens of a prompt that the prefix cache does not contain."""
    reply_tokens: int = 60
    phrase: FirstPhrase = FirstPhrase(8, 2.5)
    """As the call path cuts everyday replies, in the mean: `tests/sizing/test_traffic.py` has them."""
    short_phrase: FirstPhrase = FirstPhrase(6, 1.7)
    """The first phrase where there is no time, or with `ladder.first_phrase = "short"`."""
    sure_ms: float = 140
    """Commit: so long after the voice's end (`endpoint.sure_ms`), if the last words are known by then."""
    short_phrase_ms: int = 80
    """A first phrase that is not whole so long after commit is cut short; 0: never (`ladder.short_phrase_ms`)."""

    @property
    def is_cut_short(self) -> bool:
        """Whether each first phrase is cut short, with time or without (`ladder.first_phrase = "short"`)."""
        return self.phrase == self.short_phrase

    def cut_short(self) -> "Traffic":
        return replace(self, phrase=self.short_phrase)

    def ends(self, calls: int) -> float:
        """Silences that might be a turn's end, a millisecond, of so many calls."""
        return calls * self.silences / self.turn_s / 1000

    def phrases(self, calls: int) -> float:
        """Phrases of spoken replies, a millisecond, each as long as a later one."""
        return calls * self.spoken / LATER_PHRASE_S / 1000

    def tokens(self, calls: int) -> float:
        """Tokens that the language model generates, a millisecond: of replies, and of first phrases that are wasted."""
        return calls * (self.reply_tokens + (self.silences - 1) * self.phrase.tokens) / self.turn_s / 1000

    def wasted(self, calls: int) -> float:
        """Silences after which a reply is begun and wasted, a millisecond."""
        return self.ends(calls) * (1 - 1 / self.silences)
