"""Speakable text: total, lossless in what is written, and said as people say it. What is written in any script reaches
the voice, and no picture does."""

import unicodedata

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.stopwatch import spent
from voicepipe.languages.speakable import pieces, speakable

TRICKY = (
    "$18.50 7:30 pm 24:59 0:00 2026-05-14 31/12/2025 May 32 1st 00 +44 20 7946 **b** _i_ `c` [a](b) | --- # - 😀 e.g. "
    "Dr. no. a@b.co https://x.org/?q=1 12.5% 5 km °C 1,234,567 1e9 A12 & @ < ３ ² ٣ \n \n\n \x01"
)
MIXED = st.lists(st.one_of(st.sampled_from(TRICKY.split(" ")), st.text(max_size=6)), max_size=12).map(" ".join)


@given(st.one_of(st.text(), MIXED), st.sampled_from(["en", "en-US", "de", "", "?"]))
def test_never_raises_and_loses_nothing(text: str, language: str) -> None:
    assert "".join(piece.written for piece in pieces(text, language)) == text
    speakable(text, language)


@given(st.one_of(st.text(), MIXED))
@example("<<")
@example("㏠")
def test_nothing_is_said_that_cannot_be(text: str) -> None:
    said = speakable(text)
    assert said == " ".join(said.split())
    assert not any(sign in said for sign in "\0\x01`😀")
    assert not any(sign in "0123456789" for sign in said)


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("", ""),
        ("**Bold**, _it_ and `code`", "Bold, it and code"),
        ("[our site](https://a.example/b).", "our site."),
        ("# Title\n\n- one\n- two", "Title. one, two"),
        ("fine 👍🏽 & good", "fine and good"),
    ],
)
def test_markup(written: str, spoken: str) -> None:
    assert speakable(written) == spoken


@pytest.mark.parametrize("language", ["nl", "sv-FI", "zh", ""])
def test_other_languages_lose_only_the_markup(language: str) -> None:
    assert speakable("18,50 € **24/7** 1-800-555-0199 😀", language) == "18,50 € 24/7 1-800-555-0199"


HARD = (
    "a|a |[|](|(|1,000|a. |"
    "https://.|www.-|x@|9|9.|May |1 |$1,000,|+1 |1a|`|#1|-1|7:|etc. |((((1|!)|1 k|[x]|1,|5-|a.b.|+|.| "
).split("|") + ["|", "( ", "-", "[a"]


@pytest.mark.parametrize("unit", HARD)
def test_a_text_costs_its_length(unit: str) -> None:
    def took(chars: int) -> float:
        text = (unit * chars)[:chars]
        return spent(lambda: speakable(text))

    few, many = took(1_000), took(8_000)
    assert many < 32 * max(few, 0.0005), "eight times as much would be 64 times as dear if the square were paid"


EMOJI_ONLY = regex.compile(r"[\uFE0E\uFE0F\u20E3]")
WRITTEN = regex.compile(r"[\p{L}\p{M}\p{Nd}]")
DRAWN = regex.compile(r"(?V1)[[\p{Emoji_Presentation}\p{Co}\p{Regional_Indicator}]||[\p{InBoxDrawing}\p{InBraille}]]")


def every(kind: "regex.Pattern[str]") -> list[str]:
    return [sign for sign in map(chr, range(0x110000)) if kind.match(sign)]


@pytest.mark.parametrize("language", ["en", "hi"])
def test_every_letter_mark_and_digit_of_unicode_is_said(language: str) -> None:
    lost = []
    for sign in every(WRITTEN):
        text = f"क{sign}" if unicodedata.category(sign)[0] == "M" else sign
        if not EMOJI_ONLY.match(sign) and not (sign.isascii() and sign.isdigit()) and speakable(text, language) != text:
            lost.append(sign)
    assert not lost


def test_no_drawing_of_unicode_is_said() -> None:
    assert not [sign for sign in every(DRAWN) if speakable(f"a {sign} b", "de") != "a b"]


@pytest.mark.parametrize(
    "text",
    [
        "नमस्ते, आपका स्वागत है।",
        "வணக்கம், எப்படி இருக்கிறீர்கள்?",
        "স্বাগতম। আপনি কেমন আছেন?",
        "สวัสดีครับ ยินดีต้อนรับ",
        "မင်္ဂလာပါ။ နေကောင်းလား။",
        "ភាសាខ្មែរ៖ សួស្តី។",
        "مَرْحَبًا، كَيْفَ حَالُكَ؟",
        "می‌خواهم رزرو کنم؛ لطفاً",
        "അവന്‍ വന്നു",
        "ශ්‍රී ලංකාව",
        "צה״ל וג׳ירפה",
        "Բարև ձեզ։ Ինչպե՞ս եք",
        "ሰላም፣ እንዴት ነህ፧",
        "l’eau, ʻokina, donʼt",
        "Xin chào, tiếng Việt",
        unicodedata.normalize("NFD", "Été à Đà Nẵng"),
        unicodedata.normalize("NFD", "안녕하세요"),
        "«Olá!» ¿Qué tal? ‹Ça va› – „gut“ — …",
        "「はい」、（本当に）？！ガッツ・キャー〜",
        "४२ ٤٢ ๔๒ ４２",
        "12 €, 5 %, 20 °C, № 7",
    ],
)
def test_what_is_written_is_said_as_it_is(text: str) -> None:
    assert speakable(text, "xx") == text


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Hi 👩🏽‍🚒 there", "Hi there"),
        ("🏳️‍🌈 🇫🇷 🏴\U000e0067\U000e0062\U000e007f yes", "yes"),
        ("press 1️⃣ or 2⃣", "press 1 or 2"),
        ("yes ❤️✔︎☎", "yes"),
        ("go → here ⇒ there ▶️ ◁", "go here there"),
        ("┌─┐ ▓ ⣿ \ue000 \u200bnow\u00ad", "now"),
        ("he\u200cllo\u200d", "hello"),
        ("l´eau ´", "l'eau"),
        ("20℃, 5㎏, ㈱", "20 °C, 5 kg, (株)"),
        ("ℹ️ ok", "ok"),
        ("はい〰️ 〽 〰", "はい"),
    ],
)
def test_pictures_are_not_said(written: str, said: str) -> None:
    assert speakable(written, "xx") == said


def test_a_line_that_ends_in_a_vowel_sign_ends_in_a_pause() -> None:
    assert speakable("गाड़ी\nनहीं", "hi") == "गाड़ी, नहीं"


def test_what_stands_directly_behind_a_link_is_said() -> None:
    assert speakable("请看https://a.example/b?c=1。谢谢光临", "zh") == "请看。谢谢光临"
    assert speakable("देखें https://a.example। धन्यवाद", "hi") == "देखें । धन्यवाद"
    assert speakable("voir https://a.example/été.", "fr") == "voir ."


@pytest.mark.parametrize("unit", ["\u0301", "क\u200d", "👩\u200d", "\ufe0f", "क्", "´a", "🇩"])
def test_a_long_pile_is_no_trouble(unit: str) -> None:
    speakable(unit * 20_000, "hi")
