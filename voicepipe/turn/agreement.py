"""Which words of a growing, revising hypothesis will stand.

LocalAgreement-2 (Machacek, Dabre and Bojar, 2023, "Turning Whisper into Real-Time Transcription System"): a word is
committed when two successive hypotheses agree on it and on everything before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from voicepipe.base.words import plain


@dataclass(slots=True)
class Agreement:
    """The agreed words of one utterance's growing hypothesis. Words agree if only case, punctuation and the space
    behind them differ: those change with what follows."""

    committed: list[str] = field(default_factory=list)
    """Words that are not taken back, even if a later hypothesis revises them: the final text may differ."""
    _last: Sequence[str] = ()

    def push(self, words: Sequence[str]) -> list[str]:
        """Take the next hypothesis; returns the words that it commits."""
        heard = [plain(word) for word in words]
        agreed = 0
        for word, before in zip(heard, self._last, strict=False):
            if word != before:
                break
            agreed += 1
        self._last = heard
        new = list(words[len(self.committed) : agreed])
        self.committed += new
        return new
