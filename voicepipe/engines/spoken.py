"""What of a language model's stream is meant for the caller's ear: not its thoughts, and no white space around it."""

OPEN, CLOSE = "<think>", "</think>"
"""As Qwen, DeepSeek and most others mark their thoughts."""


class SpokenFilter:
    """One reply. Thoughts stand before what is said; a mark may come in pieces."""

    def __init__(self) -> None:
        self._pending = ""
        self._thinking = False
        self._speaking = False

    def push(self, text: str) -> str:
        """More of the stream -> what of it may be said now, perhaps nothing."""
        self._pending += text
        if self._thinking:
            _, closed, rest = self._pending.partition(CLOSE)
            if not closed:
                self._pending = self._pending[-len(CLOSE) :]
                return ""
            self._pending, self._thinking = rest, False
        if not self._speaking:
            self._pending = self._pending.lstrip()
            if self._pending.startswith(OPEN):
                self._thinking = True
                return self.push("")
            if OPEN.startswith(self._pending):
                return ""  # It may become a thought.
            self._speaking = True
        said = self._pending.rstrip()
        self._pending = self._pending[len(said) :]
        return said

    def rest(self) -> str:
        """What was held back, once the stream has ended."""
        return "" if self._thinking else self._pending.rstrip()
