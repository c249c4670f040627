"""What is taken out of calls, as a file says it."""

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.config import toml_file
from voicepipe.config.redaction_config import USUAL, RedactionConfig


def test_a_pattern_that_cannot_be_used_is_named() -> None:
    with pytest.raises(ConfigError, match="is no regular expression") as told:
        toml_file.convert({"patterns": ["("]}, RedactionConfig, "redaction")
    assert repr("(") in str(told.value)


@pytest.mark.parametrize("pattern", ["[", "a{99999999999}", "(?P<a>", "\\"])
def test_no_pattern_is_taken_that_could_not_be_looked_for(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^patterns: .* is no regular expression"):
        RedactionConfig(patterns=(r"\d+", pattern))


def test_by_default_numbers_are_taken_out_and_words_are_kept() -> None:
    assert (USUAL.cards, USUAL.keys, USUAL.patterns, USUAL.transcripts) == (True, True, (), True)
