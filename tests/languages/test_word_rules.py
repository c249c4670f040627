"""How recognisers write what callers of other languages say."""

import pytest

from voicepipe.languages.known import LANGUAGES


@pytest.mark.parametrize(
    ("tag", "heard", "said"),
    [
        ("de", "um 14:30 Uhr", "um vierzehn uhr dreißig"),
        ("de", "20 Uhr", "zwanzig uhr"),
        ("de", "4 Personen", "vier personen"),
        ("de", "0171 2345678", "null eins sieben eins zwei drei vier fünf sechs sieben acht"),
        ("de", "am 24.12.2026", "am vierundzwanzigsten dezember zweitausendsechsundzwanzig"),
        ("fr", "le 14 juillet à 19h30", "le quatorze juillet à dix neuf heures trente"),
        ("fr", "06 12 34 56 78", "zéro six un deux trois quatre cinq six sept huit"),
        ("es", "a las 8:30", "a las ocho y treinta"),
        ("es", "654 32 19 87", "seis cinco cuatro tres dos uno nueve ocho siete"),
        ("it", "alle 20.30", "alle venti e trenta"),
        ("it", "338 456", "tre tre otto quattro cinque sei"),
    ],
)
def test_numbers_are_taken_as_people_say_them(tag: str, heard: str, said: str) -> None:
    assert LANGUAGES[tag].as_said(heard) == said


@pytest.mark.parametrize(
    ("heard", "said"),
    [
        ("171 23", "eins sieben eins zwei drei"),
        ("um 14:30 Uhr", "um vierzehn uhr dreißig"),
        ("20 Uhr", "zwanzig uhr"),
        ("am 3.5.2026", "am dritten mai zweitausendsechsundzwanzig"),
    ],
)
def test_a_dictated_number_is_taken_digit_by_digit(heard: str, said: str) -> None:
    """Times, dates and what is counted are not."""
    assert LANGUAGES["de"].turn.as_said(heard, True) == said
