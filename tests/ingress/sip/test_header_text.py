"""The text of a message's head."""

import time

import pytest

from voicepipe.ingress.sip.header_text import (
    SipError,
    address_parts,
    credentials,
    header,
    parameters,
    split,
    tag_of,
    tagged,
    unfolded,
    unquoted,
)


@pytest.mark.parametrize(
    "blanks", [";tag" + " " * 7000 + "x", ";tag=" + " " * 7000 + "x", ";" + " \t" * 3500 + "tag =x"]
)
def test_a_tag_with_blanks_takes_no_time(blanks: str) -> None:
    before = time.thread_time()
    tagged(f"<sip:1@h>{blanks}", "t")
    assert time.thread_time() - before < 0.05, "it was 0.4 s"


def test_a_line_that_goes_on_in_the_next_is_one() -> None:
    assert unfolded("INVITE x\r\nTo:\r\n  <sip:a@b>\r\n\t;tag=1\nFrom: x\rVia: y") == [
        "INVITE x", "To: <sip:a@b> ;tag=1", "From: x", "Via: y",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("Call-ID: abc", "call-id", "abc"),
        ("i:abc", "call-id", "abc"),
        ("  V \t:  SIP/2.0/UDP a ", "via", "SIP/2.0/UDP a"),
        ("X-Account: a:b", "x-account", "a:b"),
        ("Subject:", "subject", ""),
    ],
)
def test_a_header_by_its_long_name(line: str, name: str, value: str) -> None:
    assert header(line) == (name, value)


@pytest.mark.parametrize("line", ["Subject", ": x", "", " \t: x"])
def test_what_is_no_header(line: str) -> None:
    with pytest.raises(SipError, match="is no header"):
        header(line)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a, b,c", ["a", "b", "c"]),
        ('"x, y" <sip:a@b>, <sip:c,d@e>', ['"x, y" <sip:a@b>', "<sip:c,d@e>"]),
        (r'"say \"hi, you\"", b', [r'"say \"hi, you\""', "b"]),
        ("", [""]),
        ("a,,b", ["a", "", "b"]),
        ('"open, b', ['"open, b']),
        ("<open, b", ["<open, b"]),
        ("a>, b", ["a>", "b"]),
    ],
)
def test_quotes_and_brackets_part_nothing(text: str, parts: list[str]) -> None:
    assert split(text, ",") == parts


def test_parameters_by_name_the_first_of_two_counts() -> None:
    assert parameters(';Tag = 1; lr;x="a;b" ;tag=2;;=y') == {"tag": "1", "lr": None, "x": '"a;b"', "": "y"}


@pytest.mark.parametrize(
    ("value", "said"), [('"a b"', "a b"), (r'"a \"b\\"', 'a "b\\'), ("a", "a"), ('"', '"'), ('"a', '"a'), ('""', "")]
)
def test_what_a_parameter_says_without_its_quotes(value: str, said: str) -> None:
    assert unquoted(value) == said


def test_credentials_say_nothing_twice() -> None:
    said = 'Digest Username="ann", realm="a, b", nc=00000001, uri="sip:a@b"'
    assert credentials(said) == {"username": "ann", "realm": "a, b", "nc": "00000001", "uri": "sip:a@b"}
    with pytest.raises(SipError, match="has two 'username'"):
        credentials(f'{said}, username="ben"')


@pytest.mark.parametrize(
    ("text", "uri", "rest"),
    [
        ("<sip:a@b;x=y>;tag=1", "sip:a@b;x=y", ";tag=1"),
        ("sip:a@b;tag=1", "sip:a@b", "tag=1"),
        ('"Ann <x>" <sip:a@b>', "sip:a@b", ""),
        ('Ann "A <sip:a@b>;tag=1', "sip:a@b", ";tag=1"),
        ("< sip:a@b >", "sip:a@b", ""),
        ("", "", ""),
    ],
)
def test_an_address_and_the_parameters_of_its_header(text: str, uri: str, rest: str) -> None:
    assert address_parts(text) == (uri, rest)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("<sip:a@b>", "<sip:a@b>;tag=t"),
        ("sip:a@b", "sip:a@b;tag=t"),
        ("<sip:a@b;tag=x>;y=1", "<sip:a@b;tag=x>;y=1;tag=t"),
        ("<sip:a@b>;tag=", "<sip:a@b>;tag=t"),
        ("<sip:a@b>; Tag ;y", "<sip:a@b>;y;tag=t"),
    ],
)
def test_a_tag_is_put_where_it_belongs(text: str, whole: str) -> None:
    assert tagged(text, "t") == whole
    assert tag_of(whole) == "t" and tag_of(text) == ""
