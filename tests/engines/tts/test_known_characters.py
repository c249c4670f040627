"""Voices get the characters that they know."""

import re
import unicodedata

import pytest

from voicepipe.engines.tts.espeak import Phonemizer
from voicepipe.engines.tts.shaping import in_known_characters, pause_after, pieces


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (unicodedata.normalize("NFD", "Xin chào été"), "Xin chào été"),
        (unicodedata.normalize("NFD", "안녕"), "안녕"),
        ("２５ ٢٥ २५ ๒๕", "25 25 25 25"),
        ("１，０００．５、１２：３０ ٣٫٥", "1,000.5、12:30 3.5"),
        ("donʼt l＇eau ʻokina", "don't l'eau ʻokina"),
        ("می‌خواهم അവന്‍", "می‌خواهم അവന്‍"),
        ("a\u200bb\u00ad\x01c\ud800", "ab c"),
        ("ﬁ ½ ㎏ ² Ａ", "ﬁ ½ ㎏ ² Ａ"),
    ],
)
def test_characters(written: str, read: str) -> None:
    assert in_known_characters(written) == read


@pytest.mark.engine
@pytest.mark.parametrize(
    ("language", "written", "same"),
    [
        ("fr", unicodedata.normalize("NFD", "été"), "été"),
        ("ko", unicodedata.normalize("NFD", "안녕"), "안녕"),
        ("vi", unicodedata.normalize("NFD", "tiếng Việt"), "tiếng Việt"),
        ("cmn", "２５", "25"),
        ("en-us", "٢٥ donʼt", "25 don't"),
        ("hi", "२५", "25"),
        ("fa", "۳٫۵", "3.5"),
    ],
)
def test_espeak_reads_them_as_they_are_meant(language: str, written: str, same: str) -> None:
    phonemizer = Phonemizer()
    (piece,) = pieces(written)
    assert phonemizer.phonemes(piece, language) == phonemizer.phonemes(same, language) != ""


@pytest.mark.engine
@pytest.mark.parametrize(
    ("language", "text", "marks"),
    [("cmn", "你好，世界。好吗？", ",.?"), ("hi", "यह है। ठीक", "."), ("ur", "کیا؟ ہاں، ٹھیک۔", "?,.")],
)
def test_phonemes_keep_the_marks_of_every_script(language: str, text: str, marks: str) -> None:
    phonemes = Phonemizer().phonemes(text, language)
    assert "".join(re.findall(r"[,.?!;:](?= |$)", phonemes)) == marks


@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("好。", "."),
        ("好吗？」", "?"),
        ("है।", "."),
        ("نعم؟", "?"),
        ("好，", ","),
        ("ሰላም፣", ","),
        ("是：", ":"),
        ("好", ""),
    ],
)
def test_a_phrase_pauses_by_its_mark(text: str, like: str) -> None:
    assert pause_after(text, 8000).size == pause_after(f"a{like}", 8000).size


@pytest.mark.parametrize("text", ["我们每天九点开门。" * 60, "हम रोज़ खुले हैं। " * 60, "เราเปิดทุกวัน" * 60])
def test_a_long_text_is_parted_where_sentences_end_and_never_inside_a_letter(text: str) -> None:
    parts = pieces(text)
    assert len(parts) > 1 and "".join(parts).replace(" ", "") == in_known_characters(text).replace(" ", "")
    assert not any(unicodedata.category(part[0])[0] == "M" for part in parts)
    assert "।" not in text and "。" not in text or all(part[-1] in "。।" for part in parts)
