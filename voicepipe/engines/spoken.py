"""What of a language model's stream is meant for the caller's ear: not its thoughts, and no white space around it."""

OPEN, CLOSE = "<think>", "</think>"
"""As Qwen, DeepSeek and most others mark their thoughts."""


class SpokenFilter:
    """One reply. Thoughts stand before what is said; a mark may come in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._thinking = False
        self._speaking = False

    def push(self, text: str) -> str:
        """More of the stream -> what of it may be said now, perhaps nothing."""
        self._held += text
        if self._thinking:
            _, closed, rest = self._held.partition(CLOSE)
            if not closed:
                self._held = self._held[-len(CLOSE) :]
                return ""
            self._held, self._thinking = rest, False
        if not self._speaking:
            self._held = self._held.lstrip()
            if self._held.startswith(OPEN):
                self._thinking = True
                return self.push("")
            if OPEN.startswith(self._held):
                return ""  # It may become a thought.
            self._speaking = True
        said = self._held.rstrip()
        self._held = self._held[len(said) :]
        return said

    def rest(self) -> str:
        """What was held back, once the stream has ended."""
        return "" if self._thinking else self._held.rstrip()
