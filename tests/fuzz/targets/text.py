"""What a language model writes: cut into phrases, turned into words that can be spoken."""

from random import Random

from tests.fuzz.target import Target
from voicepipe.base.words import plain, written
from voicepipe.conversation.phrases import SENTENCES, PhraseLengths, Phraser
from voicepipe.languages.known import LANGUAGES
from voicepipe.languages.speakable import pieces

SEEDS = (
    "Sure. Your table for 4 is booked for Friday, March 3rd, at 7:30 p.m. Anything else?",
    "It costs $18.50, or €1,299.99 a year (that is 12.5 % less than No. 7 by Dr. J. Smith, Ltd.).",
    "Call +49 (0)30 123456-78 or write to ann.lee@example.com; see https://example.com/a?b=c#d for more.",
    "## Menu\n\n* **Soup**: 3,5 €\n* _Bread_ `free`\n1. First\n2. Second\n\n```code```\n| a | b |\n",
    "Am 3. Mai um 14:30 Uhr, ca. 1.250,50 € bzw. 3 Mio. $; le 1er mai à 18h45, 06 12 34 56 78, n° 12.",
    "El 5 de marzo a las 9 p. m., 21 páginas, 654 321 987; l'8 marzo alle 20.30, 80 m², il XXI secolo, Sig.ra Neri.",
    "I.e. the 2nd of 1/3/2024, 10-12 kg, 5'11\", 1st-3rd, 2010-2020, -7.5 degrees, 3.14159265358979 and 1e10!",
    "\u201cQuoted\u201d \u2014 and\u2026 \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467 naïve Ärger"
    " 日本語 العربية",
    "您好，欢迎致电（港湾餐厅）。他说：「１，０００．５元。」12点30分 iPhone！？ สวัสดีครับ"
    " น้ำ नमस्ते, क्ष है। کیا؟ می\u200cخواهم ខ្ញុំ។ 안녕 1️⃣ e\u0301",
)
HEARD = (
    "A table for 2 on Friday at 7:30, please. Or at 730PM, 7.30, 1930 hours, half past 7.",
    "Um 14.30 Uhr, am 24.12., 0171 2345678; le 14 juillet à 19h30; a las 8:30; alle 20.30.",
    "My number is 555-0142, 5-55 014 2, 555-707O. No. 6. 20-20-20 people",
    "Okay, alright, mister Smith. The 5th of May, May 5, 2nd of 3 at 4.",
)
WORDS = tuple(
    word.encode()
    for word in "$ € £ % ° ** __ ``` ` ~~ ( ) [ ]( http:// https://a.b www. @ a.m. p.m. Dr. e.g. No. 1st 10:30 "
    "12/31/1999 +49 555-0100 1,000,000.00 0x 1e9 ½ ² № ： \u200b \u00a0 - – — … .. ?! # 1. • kg °C 20-30 X1Y2".split()
)
CHARACTERS = "aA1 .,;:!?()[]*_`~-–—$€%'\"/@#+=<>|\\&\n\t0\u00a0\u200bé日\U0001f600。，「」１เा्ّ\u200d\u0301\ufe0f"


def _text(random: Random) -> bytes:
    """Words, prices and signs in any order, or one sign again and again: what is slow is mostly of one kind."""
    if random.random() < 0.3:
        unit = "".join(random.choices(CHARACTERS, k=random.randint(1, 3)))
        return (unit * (random.choice((100, 1000, 8000)) // len(unit))).encode()
    joint = random.choice((b" ", b"", b"\n"))
    return joint.join(random.choice((*WORDS, b"word", b"Seven")) for _ in range(random.randint(1, 200)))


def _decoded(data: bytes) -> str:
    return data.decode(errors="replace")


CUT = ((PhraseLengths(), False, 5), (PhraseLengths(), True, 60), (SENTENCES, False, 10_000))
"""How a reply is cut, whether in a hurry, and the letters of a token: of a model, of a fast one, of a fixed text."""


def phrases(data: bytes) -> None:
    """Nothing of a reply is lost. Its length says how it comes."""
    text = _decoded(data)
    lengths, hurry, step = CUT[len(data) % len(CUT)]
    phraser = Phraser(lengths, hurry=hurry)
    out = [phrase for at in range(0, len(text), step) for phrase in phraser.push(text[at : at + step])]
    assert "".join([*out, *phraser.flush()]) == text


LANGUAGE_TAGS = ("en", "en-GB", "nl", "de", "fr", "es", "it")
"""By the length of a text, which the fuzzer changes."""


def spoken(data: bytes) -> None:
    """The written pieces are the text itself."""
    text = _decoded(data)
    parts = pieces(text, LANGUAGE_TAGS[len(data) % len(LANGUAGE_TAGS)])
    assert "".join(part.written for part in parts) == text
    assert "".join(written(text)) == text
    assert plain(plain(text)) == plain(text)


def _seeds() -> list[bytes]:
    return [text.encode() for text in SEEDS]


def _as_said(data: bytes) -> None:
    language = tuple(LANGUAGES.values())[len(data) % len(LANGUAGES)]
    for dictated in (False, True):
        language.turn.as_said(_decoded(data), dictated)


def _heard() -> list[bytes]:
    return [text.encode() for text in HEARD]


TARGETS = (
    Target("phrases", "a reply's tokens, cut into phrases", phrases, _seeds, _text, WORDS, share=0.5, largest=4096),
    Target("speakable", "a phrase's prices and dates as words", spoken, _seeds, _text, WORDS, share=0.5, largest=2048),
    Target(
        "as_said", "what a recogniser writes, as it was said", _as_said, _heard, _text, WORDS, share=0.5, largest=2048
    ),
)
