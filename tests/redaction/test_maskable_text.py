"""One text that is kept, and how it reads with some of its numbers masked."""

import json
import unicodedata

import pytest

from voicepipe.config.pop_config import LONGEST
from voicepipe.redaction.maskable_text import MaskableText, json_or_plain, plain, split
from voicepipe.redaction.numbers_read import Gap, Number, read


def numbered(text: MaskableText, masks: str = "") -> MaskableText:
    """Its numbers are read, and those whose place in `masks` has an x are masked."""
    for part in text.parts:
        part.numbers = read(part.text, set()).numbers
    for number, mask in zip(text.numbers(), masks, strict=False):
        number.mask = "[card]" if mask == "x" else ""
    return text


def test_a_text_without_masks_reads_as_it_was() -> None:
    assert numbered(plain(1, "I have 12, and 30 more.")).reads() == "I have 12, and 30 more."


def test_the_parts_of_one_number_have_one_mask() -> None:
    said = "it is 4539, 1488 and my dog barks 0343"
    assert numbered(plain(1, said), "x.").reads() == "it is [card] and my dog barks 0343"
    assert numbered(plain(1, said), "xx").reads() == "it is [card] and my dog barks [card]"


def test_what_else_is_not_shown_is_replaced_too() -> None:
    text = numbered(plain(1, "I am Jo, 4539 1488"), "x")
    text.parts[0].replaced.append((5, 7, "[redacted]"))
    assert text.reads() == "I am [redacted], [card]"


def test_of_two_that_overlap_nothing_is_shown_and_both_are_named() -> None:
    text = plain(1, "abcdefgh")
    text.parts[0].replaced += [(1, 5, "[one]"), (3, 7, "[two]"), (4, 6, "[two]")]
    assert text.reads() == "a[one][two]h"


def test_a_text_is_cut_where_it_is_too_long() -> None:
    text = plain(1, "a" * (LONGEST + 1))
    assert text.cut and text.reads() == "a" * LONGEST
    assert not plain(1, "a" * LONGEST).cut


def test_accents_are_one_character_however_they_are_written() -> None:
    assert plain(1, unicodedata.normalize("NFD", "três")).reads() == unicodedata.normalize("NFC", "três")


TOLD = '{"card" : "4539 1488", "n": [4539, 1488], "guests": 2, "of": {"4539148803": "\\u00e9"}, "ok": true}'


def test_json_is_read_by_its_strings_and_numbers() -> None:
    text = json_or_plain(1, TOLD)
    assert text.is_json and text.reads() == TOLD
    parts = [(part.name, part.text, part.follows) for part in text.parts]
    assert parts == [
        ("card", "4539 1488", False),
        ("n", "4539", False),
        ("n", "1488", True),
        ("guests", "2", False),
        ("of.4539148803", "4539148803", False),
        ("of.4539148803", "é", False),
    ]


def test_masked_json_stays_json() -> None:
    kept = json.loads(numbered(json_or_plain(1, TOLD), "xxx.x").reads())
    assert kept == {"card": "[card]", "n": ["[card]", "[card]"], "guests": 2, "of": {"[card]": "é"}, "ok": True}


@pytest.mark.parametrize("text", ['{"a": 1', "pay(4539)", "", "[" * 1500, '{"a": "' + "b" * LONGEST + '"}'])
def test_what_is_no_json_or_too_long_is_a_plain_text(text: str) -> None:
    kept = json_or_plain(1, text)
    assert not kept.is_json and kept.reads() == text[:LONGEST]


def test_numbers_are_split_where_the_gap_is_as_large() -> None:
    gaps = [Gap.CLOSE, Gap.CLOSE, Gap.LOOSE, Gap.APART, Gap.CLOSE]
    numbers = [Number(0, 1, str(index), gap) for index, gap in enumerate(gaps)]
    for at, parts in ((Gap.LOOSE, ["01", "2", "34"]), (Gap.APART, ["012", "34"])):
        assert ["".join(number.digits for number in part) for part in split(numbers, at)] == parts
