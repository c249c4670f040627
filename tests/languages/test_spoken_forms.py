"""What holds for all written forms; what is said for each stands in `verbaliser/`."""

import re
from functools import partial
from math import ceil

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.stopwatch import spent
from voicepipe.conversation.phrases import PhraseLengths, Phraser
from voicepipe.languages.known import LANGUAGES
from voicepipe.languages.speakable import pieces, speakable

LONGEST_S = 0.1
"""Of processor time, for a phrase of `LONGEST`: several times what any of them needs, a hundredth of a defect's."""
LONGEST = 500
"""Characters that a phrase has at most."""
PARTS = (
    "1 22 333 4444 55555 007 1,234 1.5 .5 ½ 1980 2024 05 12 - – / . , : x + = * % $ US$ € £ EUR k M km lb °C am pm "
    "p.m. st th s ' \" ( ) # @ and to in for call order room ext. Jan Mon-Fri v a A BA w/ example.com Dr. No. million"
).split(" ")
EUROPEAN = (
    *PARTS,
    *"1.234 1,5 3. Uhr h Mio. mln M€ Mai mai mayo maggio am le el l' d' º ª 1er 18h45 14:30 0171 +49 /mes XXI".split(),
)
NUMBERY = st.lists(st.sampled_from([*PARTS, " ", " ", " "]), max_size=24).map("".join)
SAID = re.compile(
    r"(?i)\b(?:zero|oh|ones?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred|thousand|"
    r"[mb]illion|trillion|first|second|third|\w+th|\w+ths|thirds|hal(?:f|ves)|quarters?|\w+ies|\w+teens|tens|"
    r"elevens|twelves|hundreds|thousands|midnight|cubed|squared|January|February|March|April|May|June|July|August|"
    r"September|October|November|December)\b"
)


@given(NUMBERY)
@example("1.5¢")
@example("9" * 400)
@example("1" * 20 + ".5")
def test_no_digit_is_lost(text: str) -> None:
    """A word says two digits at most ("twelve", "May")."""
    said = speakable(text)
    assert not re.search("[0-9]", said)
    asked = re.sub(r"example\.com\S*", "", text)  # What stands behind a "?" in an address is not said.
    assert len(SAID.findall(said)) >= ceil(len(re.findall("[1-9]", asked)) / 2)


@given(st.one_of(NUMBERY, st.text(max_size=300)), st.integers(1, 40))
def test_a_text_takes_little_time(text: str, times: int) -> None:
    text = (text * times)[:LONGEST]
    assert spent(lambda: speakable(text), LONGEST_S) < LONGEST_S


@given(
    st.sampled_from(["de", "fr", "es", "it"]),
    st.lists(st.sampled_from([*EUROPEAN, " ", " ", " "]), max_size=24).map("".join),
    st.integers(1, 40),
)
@example("de", "9" * 400, 1)
@example("fr", "1" * 20 + ",5", 1)
@example("es", "5 augu\u017ft 3 \u0130", 1)
def test_other_languages_say_every_digit_in_little_time(tag: str, text: str, times: int) -> None:
    """Also as they take what a recogniser has written."""
    text, language = (text * times)[:LONGEST], LANGUAGES[tag]
    language.turn.warm()
    assert not re.search("[0-9]", speakable(text, tag))
    for dictated in (False, True):
        language.turn.as_said(text, dictated)
    assert spent(lambda: speakable(text, tag), LONGEST_S) < LONGEST_S


@pytest.mark.parametrize("tag", LANGUAGES)
@pytest.mark.parametrize("after", ["", "1", " ", "- "], ids=["alone", "one", "space", "dash"])
def test_a_long_row_takes_little_time(tag: str, after: str) -> None:
    """Of any sign that a form can begin with, in each way that a pattern may part it."""
    for sign in LANGUAGES[tag].forms.begins():
        for part in (sign, sign + after, sign * 4 + after):
            row = (part * LONGEST)[:LONGEST] + after
            assert spent(partial(speakable, row, tag), LONGEST_S) < LONGEST_S, ascii(sign)


WHOLE = (
    "1.800.555.0199|1 800 555 0199|2.4.1|example.com/menu?x=1|4 1/2 hours|$2 trillion|US$76.3 trillion|10-15 %|"
    "3:05 p.m.|5,000 km|72 °F|-5 °C|416-555-0192 ext. 12|Jan. 3rd|30 USD|9 a.m. - 5 p.m.|+44 20 7946 0958|"
    "€1,234.50 million|3 kg"
).split("|")


@pytest.mark.parametrize("form", WHOLE)
@pytest.mark.parametrize("before", range(12))
@pytest.mark.parametrize("hurry", [False, True])
def test_no_phrase_ends_inside_a_form(form: str, before: int, hurry: bool) -> None:
    reply = " ".join(["bright"] * before + [form] + ["colours"] * 20)
    phraser = Phraser(PhraseLengths(), hurry=hurry)
    phrases = [phrase for at in range(0, len(reply), 3) for phrase in phraser.push(reply[at : at + 3])]
    assert any(form in phrase for phrase in [*phrases, *phraser.flush()])


def test_a_form_is_one_piece_with_what_it_was_written_as() -> None:
    """So that the history keeps "4 1/2", not "4", of a reply that was cut after "four"."""
    assert [(piece.written, piece.spoken) for piece in pieces("about 4 1/2 hours, $250-$300")] == [
        ("about ", "about"),
        ("4 1/2 ", "four and a half"),
        ("hours, ", "hours,"),
        ("$250-$300", "two hundred fifty to three hundred dollars"),
    ]
