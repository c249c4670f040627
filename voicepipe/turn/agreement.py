"""Interim version; `Agreement().push(words) -> newly committed words`."""

from dataclasses import dataclass, field


@dataclass
class Agreement:
    committed: list[str] = field(default_factory=list)
    _last: list[str] = field(default_factory=list)

    def push(self, words: list[str]) -> list[str]:
        n = len(self.committed)
        common = 0
        while common < min(len(words), len(self._last)) and words[common] == self._last[common]:
            common += 1
        self._last = words
        new = words[n:common]
        self.committed += new
        return new
