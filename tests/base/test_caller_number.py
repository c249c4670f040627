"""Logs show who calls by the last three digits of a number."""

import pytest

from voicepipe.base.caller_number import last_three
from voicepipe.call_settings import Origin
from voicepipe.ingress.hosted_call import _parties


@pytest.mark.parametrize(
    ("caller", "shown"),
    [
        ("+49301234567", "...567"),
        ("0049 30 123-4567", "...567"),
        ("+49 (30) 1234.567", "...567"),
        ("%2B49301234567", "...567"),
        ("٠٣٠١٢٣٤٥٦٧", "...٥٦٧"),
        ("4567", "...567"),
        ("sip:+49301234567@192.0.2.70", "sip:...567@192.0.2.70"),
        ("tel:+49301234567", "tel:...567"),
        ("desk49301234567", "desk...567"),
        ("201", "201"),
        ("", ""),
        ("anonymous", "anonymous"),
        ("sip:alice@192.0.2.70", "sip:alice@192.0.2.70"),
        ("client:alice2", "client:alice2"),
    ],
)
def test_a_number_is_shown_by_its_last_three_digits(caller: str, shown: str) -> None:
    assert last_three(caller) == shown


def test_the_log_line_of_a_call_shows_all_of_the_dialled_number_alone() -> None:
    assert _parties(Origin("+49301234567", "+493099887766")) == " from '...567' to '+493099887766'"
