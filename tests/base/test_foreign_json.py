"""JSON that others have written: read as msgspec reads it, but quickly."""

import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.base.foreign_json import decode

SLOW = ["9e303", "9e-310", "1e308", "1.7976931348623157e-310", "2.22507385850720113605740979670913197593481954635e-308"]
"""Numbers for which msgspec's own reading takes 4 to 9 µs."""


class Shape(msgspec.Struct):
    any: Any = None
    text: str = ""


@pytest.mark.parametrize("number", SLOW)
def test_half_a_megabyte_of_slow_numbers(number: str) -> None:
    raw = f'{{"any":[{",".join([number] * (500_000 // (len(number) + 1)))}]}}'
    begun = time.thread_time()
    decoded = [decode(raw), decode(raw.encode(), Shape)]
    assert time.thread_time() - begun < 0.4
    assert decoded[0]["any"][-1] == decoded[1].any[-1] == float(number)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_what_msgspec_makes_of_it(number: float) -> None:
    read = decode(repr(number))
    assert type(read) is float
    assert repr(read) == repr(msgspec.json.decode(repr(number))) == repr(number)


@given(st.from_regex(r"-?[0-9]{0,3}(\.[0-9_]{0,3})?([eE][+-]?[0-9]{0,3})?|nan|-?inf(inity)?|NaN", fullmatch=True))
def test_what_is_no_number_stays_none(text: str) -> None:
    def read(how: Any) -> tuple[str, str]:
        try:
            return "", repr(how(text))
        except msgspec.DecodeError as error:
            return type(error).__name__, str(error)

    assert read(decode) == read(msgspec.json.decode)


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1e309", "1" * 400 + ".5"])
def test_a_number_that_no_float_can_be_is_refused(number: str) -> None:
    with pytest.raises(msgspec.DecodeError, match="Number out of range"):
        decode(f'{{"any":{number}}}', Shape)


@pytest.mark.parametrize("raw", ["", "{", '{"text":1.5}', '{"text":1}', "[]"])
def test_mistakes_are_told_as_msgspec_tells_them(raw: str) -> None:
    with pytest.raises(msgspec.DecodeError) as ours:
        decode(raw, Shape)
    with pytest.raises(msgspec.DecodeError) as theirs:
        msgspec.json.decode(raw, type=Shape)
    assert (type(ours.value), str(ours.value)) == (type(theirs.value), str(theirs.value))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"any":"\xff"}', "can't decode byte 0xff"),
        ('{"any":"\ud800"}', "surrogates not allowed"),
        ("[" * 50_000, "it is nested too deeply"),
        (msgspec.Raw(b'{"any":' * 50_000), "it is nested too deeply"),
    ],
    ids=["no UTF-8", "half a character", "nested", "nested, with a shape"],
)
def test_there_is_one_error_to_catch(raw: str | bytes | msgspec.Raw, said: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=said):
        decode(raw, Any if isinstance(raw, str) else Shape)
