"""A table of written forms and what is said for each, as cases of a test: alone, in a sentence, and in a language
without forms."""

import re
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest

from voicepipe.languages.speakable import speakable


class Row(NamedTuple):
    said: Callable[[], str]
    expected: str


def rows(table: str) -> pytest.MarkDecorator:
    """A line is "written -> spoken"; what is spoken may stand on a line of its own, behind "->"."""
    pairs = [line.split(" -> ") for line in re.sub("\n-> ", " -> ", table).strip().splitlines()]
    return pytest.mark.parametrize(
        "row",
        [
            pytest.param(row, id=f"{written}, {place}")
            for written, spoken in pairs
            for place, row in {
                "alone": Row(partial(speakable, written), spoken),
                "in a sentence": _in_a_sentence(written, f"Sure: {spoken.removesuffix('.')}"),
                "in Dutch": Row(partial(_digits_in_dutch, written), _digits(re.sub(r"https?://\S*", "", written))),
            }.items()
        ],
    )


def _in_a_sentence(written: str, begin: str) -> Row:
    return Row(lambda: speakable(f"Sure: {written}, then.")[: len(begin)], begin)


def _digits_in_dutch(written: str) -> str:
    return _digits(speakable(written, "nl"))


def _digits(text: str) -> str:
    return "".join(re.findall("[0-9]", text))
