"""What is taken out of calls before anything of them is kept."""

import regex

from voicepipe.base.ranges import Section

LONGEST = 2000
"""Characters of the longest text that is kept."""


class RedactionConfig(Section, frozen=True):
    """What is masked in calls before anything of them is kept: keys of `[records]` (`RecordsConfig`)."""

    cards: bool = True
    """Card numbers, in digits and in words, over several turns; with them expiry dates and security codes."""
    keys: bool = True
    """Keys that callers press on their telephones."""
    patterns: tuple[str, ...] = ()
    """The operator's regular expressions; each match is taken out. A text that keeps one busy for too long is taken out
    whole."""
    transcripts: bool = True
    """False: no words are kept, nor arguments and results of tools."""

    def __post_init__(self) -> None:
        for pattern in self.patterns:
            try:
                regex.compile(pattern)
            except (regex.error, OverflowError, RecursionError) as error:
                raise ValueError(f"patterns: {pattern!r} is no regular expression: {error}") from None


USUAL = RedactionConfig()
"""The default where nothing else is configured."""
