"""What a client did wrong, in the words and codes of OpenAI's API."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from voicepipe.ingress.wire_errors import LONGEST, WireError, wire_error


class Format(Struct):
    type: Literal["audio/pcm", "audio/pcmu"]
    rate: Annotated[int, Meta(ge=8000)] = 8000


class Asked(Struct):
    format: Format
    names: list[str] = []


def mistake(text: str, prefix: str = "") -> WireError:
    with pytest.raises((msgspec.DecodeError, RecursionError)) as caught:
        msgspec.json.decode(text, type=Asked)
    return wire_error(caught.value, prefix)


@pytest.mark.parametrize(
    ("text", "code", "param", "message"),
    [
        ('{"format": {}}', "missing_required_parameter", "session.format.type",
         "Missing required parameter: 'session.format.type'."),
        ("{}", "missing_required_parameter", "session.format", "Missing required parameter: 'session.format'."),
        ('{"format": 5}', "invalid_type", "session.format",
         "Invalid type for 'session.format': Expected `object`, got `int`."),
        ('{"format": {"type": "mp3"}}', "invalid_value", "session.format.type",
         "Invalid value for 'session.format.type': Invalid enum value 'mp3'."),
        ('{"format": {"type": "audio/pcm", "rate": 5}}', "invalid_value", "session.format.rate",
         "Invalid value for 'session.format.rate': Expected `int` >= 8000."),
        ('{"format": {"type": "audio/pcm"}, "names": ["a", 5]}', "invalid_type", "session.names[1]",
         "Invalid type for 'session.names[1]': Expected `str`, got `int`."),
    ],
)  # fmt: skip
def test_the_field_at_fault_is_named_by_its_path(text: str, code: str, param: str, message: str) -> None:
    error = mistake(text, "session")
    assert (error.code, error.param, error.message) == (code, param, message)
    assert error.kind == "invalid_request_error"
    assert mistake(text).param == param.removeprefix("session.")


def test_of_the_whole_message_no_field_is_at_fault() -> None:
    error = mistake("[]")
    assert (error.code, error.param, error.message) == ("invalid_type", None, "Expected `object`, got `array`.")


@pytest.mark.parametrize("text", ["", "{", '{"format": }', "nonsense"])
def test_what_is_no_json_is_said(text: str) -> None:
    error = mistake(text)
    assert (error.code, error.param) == ("invalid_json", None)
    assert error.message.startswith("The message is not valid JSON: ")


def test_what_is_nested_too_deeply_is_no_failure_of_ours() -> None:
    assert wire_error(RecursionError()).code == "invalid_json"


def test_a_clients_own_text_comes_back_shortened() -> None:
    error = WireError("invalid_value", "x" * 10_000, "y" * 10_000)
    assert len(error.message) == LONGEST and error.param == "y" * LONGEST
    assert WireError("invalid_value", "x", "").param is None
