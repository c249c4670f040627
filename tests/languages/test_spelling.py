"""What callers spell: who is in the middle of a name is waited for, and who is through is answered."""

import time

import pytest

from voicepipe.languages.known import LANGUAGES, language_of
from voicepipe.turn.endpoint import EndpointConfig, Endpointer, Evidence

SPELL = {
    "de": "Können Sie das bitte buchstabieren?",
    "en": "Can you spell that for me?",
    "es": "¿Me lo puede deletrear?",
    "fr": "Pouvez-vous épeler votre nom ?",
    "it": "Può fare lo spelling?",
}
BROKEN_OFF = {
    "de": "M wie Martha Ü wie, m wie, anton berta cäsar d wie, S wie Siegfried sch wie",
    "en": "M as in mike U as in, b for",
    "es": "a como, be de, be de Barcelona a de, A como Antonio B como",
    "fr": "A comme, A comme Anatole B comme",
    "it": "b di, A come Ancona B come, B di Bologna A di",
}
GOES_ON = {
    "de": "M, M wie Martha, M Ü, Anton Berta Cäsar, Aachen Berlin Chemnitz, Mein Name ist Müller M Ü L, m doppel l, "
    "Ypsilon i l, M Ü L Bindestrich",
    "en": "M, M as in mike, A as in apple, alpha bravo charlie, My name is Miller M I L, alpha B charlie, double l e, "
    "M U double",
    "es": "be de Barcelona, ge a erre, Antonio Barcelona Carmen, G A R C, Me llamo García ge a erre, doble ele u, "
    "uve doble e be",
    "fr": "D U P, A comme Anatole, Anatole Berthe Célestin, Mon nom est Dupont D U P, L E accent aigu, p deux l e, "
    "D U double",
    "it": "B, R O S, A come Ancona, Ancona Bologna Como, erre o esse esse, Mi chiamo Rossi R O S, B di Bologna, "
    "doppia vu a elle, R S doppia",
}
WHOLE = {
    "de": "Mein Name ist Müller M Ü L L E R, müller m u e l l e r, Weiß W E I S S, Yılmaz Ypsilon I L M A Z, Müller "
    "M wie Martha Ü wie Übermut zwei l E wie Emil R wie Richard, Der Name ist Beck B E C K, "
    "Krause Kaufmann Richard Anton Ulrich Samuel Emil",
    "en": "My name is Miller M I double L E R, Cohen C O H E N, My name is Maria M A R I A",
    "es": "Me llamo García ge a erre ce i a, Vega uve e ge a, Ruiz R U I Z, Quevedo cu u e uve e de o",
    "fr": "Mon nom est Dupont D U P O N T, Lefèvre L E F E accent grave V R E, Roy R O i grec",
    "it": "Mi chiamo Rossi R O S S I, Zucchi zeta u ci ci acca i, Rosa Roma Otranto Savona Ancona",
}
OTHER = {
    "de": "Ich möchte einen Tisch, Anton Müller, Ist die CD da, nach Köln, "
    "Das Kennzeichen ist eins zwei drei A B, Schulze mit doppel s, Hausnummer zwei B, web Punkt D E",
    "en": "at seven p m, is it okay, The hotel is nice, I live in the U.S.A., 订位",
    "es": "a las ocho p. m., Me llamo Antonio, voy a Barcelona, quiero ese de ahí, sí ya se lo di a él",
    "fr": "combien il y en a, C'est Pierre, il y a du monde, je viens à Nice, "
    "La plaque est A B un deux trois C D, jean arobase orange point F R, Rousseau avec deux S",
    "it": "vado a Roma, da Bologna a Milano, ci vediamo alle otto, o la carne o il pesce",
}


def each(rows: dict[str, str]) -> "pytest.MarkDecorator":
    return pytest.mark.parametrize(("tag", "said"), [(tag, said) for tag in rows for said in rows[tag].split(", ")])


def endpointer(tag: str) -> Endpointer:
    return Endpointer(EndpointConfig(), turn=language_of(tag).turn)


def reason(tag: str, said: str, asked: str = "") -> tuple[float, str]:
    judged = endpointer(tag).judge(Evidence(said, asked=asked))
    return judged.required_ms, judged.reason


def test_every_language_with_rules_can_be_spelled_in() -> None:
    assert set(SPELL) == set(LANGUAGES)


@each(BROKEN_OFF)
def test_behind_as_in_a_word_is_missing(tag: str, said: str) -> None:
    assert reason(tag, said) == (1350, "the last word leads on")
    assert not language_of(tag).turn.answers(said, SPELL[tag])


@each(GOES_ON)
def test_more_letters_may_follow(tag: str, said: str) -> None:
    for asked in ("", SPELL[tag]):
        waits_ms, why = reason(tag, said, asked)
        assert why == "a name is being spelled" and 600 < waits_ms < 1200
    assert not language_of(tag).turn.answers(said, SPELL[tag])


@each(WHOLE)
def test_a_name_that_was_said_is_spelled_to_its_end(tag: str, said: str) -> None:
    assert reason(tag, said) == (140, "the sentence is complete")
    assert reason(tag, said, SPELL[tag]) == (240, "it answers what was asked")


@pytest.mark.parametrize(
    ("tag", "asked", "said"),
    [
        ("de", "Müller, richtig? Können Sie das bitte buchstabieren?", "M Ü L L E R"),
        ("de", SPELL["de"], "M Ü L L E R, danke"),
        ("en", "Can you spell Miller for me?", "em as in, M I L L E R"),
        ("en", SPELL["en"], "M I L L E R, that's it"),
        ("es", "¿Me puede deletrear García?", "ge a erre ce i a"),
        ("es", SPELL["es"], "ge a erre ce i a, gracias"),
        ("fr", "Pouvez-vous épeler Dupont ?", "D U P O N T"),
        ("fr", SPELL["fr"], "D U P O N T, voilà"),
        ("it", "Può fare lo spelling di Rossi?", "erre o esse esse i"),
        ("it", SPELL["it"], "erre o esse esse i, grazie"),
    ],
)
def test_a_spelled_name_answers_who_asks_for_it(tag: str, asked: str, said: str) -> None:
    assert language_of(tag).turn.answers(said, asked)
    assert not language_of(tag).turn.answers("".join(said.partition(",")[0].rsplit(" ", 1)[:1]), asked)


@each(OTHER)
def test_letters_and_names_that_are_words_or_end_a_code(tag: str, said: str) -> None:
    assert reason(tag, said)[1] != "a name is being spelled"


@pytest.mark.parametrize("tag", sorted(LANGUAGES))
def test_long_rows_take_no_time(tag: str) -> None:
    said, turn = "a de a como di wie m l e r " * 200, language_of(tag).turn
    turn.ends("a")
    began = time.process_time()
    turn.answers(said, SPELL[tag])
    turn.ends(turn.as_said(said, False))
    assert time.process_time() - began < 1
