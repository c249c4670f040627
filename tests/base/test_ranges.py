"""Configured values, and the range that each may have."""

import re
from typing import Any

import msgspec
import pytest

from voicepipe.base import ranges


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (ranges.Ms, [0, 600_000], [-1, 600_001, 0.5]),
        (ranges.Port, [0, 65_535], [-1, 65_536]),
        (ranges.Decibel, [-96.0, 0], [-96.5, 0.1]),
        (ranges.Probability, [0.001, 0.999], [0, 1]),
        (ranges.Wait, [100, 600_000], [30]),
        (ranges.Speed, [0.25, 1.5], [0.2, 1.6]),
        (ranges.Name, ["a", "fra-1_b", "0"], ["", "A", "-a", "a b", "é"]),
        (ranges.Label, ["", "1.2+b", "A" * 64], ["a b", "A" * 65, "/"]),
        (ranges.Variable, ["", "A_1", "_a"], ["1A", "A-B", "A B"]),
        (ranges.Positive, [1], [0, -1]),
        (ranges.Price, [0, 1e9], [-0.01, 2e9]),
    ],
)
def test_a_value_is_within_its_range(kind: Any, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        assert msgspec.convert(value, kind) == value
    for value in wrong:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, kind)


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        (ranges.DEVICE, ["auto", "cpu", "cuda", "cuda:12"], ["gpu", "cuda:", "cuda:a", "CPU"]),
        (ranges.LANGUAGE, ["en", "de", "en-GB", "zh-Hant-TW", "yue"], ["e", "english", "en_GB", "en-"]),
        (ranges.FUNCTION, ["book_table", "a-b", "A" * 64], ["", "a.b", "A" * 65]),
    ],
)
def test_texts_with_a_pattern(pattern: str, right: list[str], wrong: list[str]) -> None:
    assert all(re.match(pattern, text) for text in right)
    assert not any(re.match(pattern, text) for text in wrong)


@pytest.mark.parametrize("address", ["0.0.0.0", "my.host", "::1", "192.0.2.256", "192.0.2.0/24"])
def test_a_host_has_an_ipv4_address_of_its_own(address: str) -> None:
    ranges.check_hosts(one="192.0.2.7", other="")
    with pytest.raises(ValueError, match=f"^other: '{address}' is no IPv4 address of one host"):
        ranges.check_hosts(one="192.0.2.7", other=address)


@pytest.mark.parametrize(
    ("text", "whether"),
    [
        ("https://a.example/b?c", True),
        ("http://127.0.0.1:8000", True),
        ("http://[::1]:8000/", True),
        ("ftp://a.example", False),
        ("a.example", False),
        ("http://", False),
        ("http://[::1", False),
        ("http://a:b", False),
        ("http://a:0", False),
    ],
)
def test_addresses_of_the_web(text: str, whether: bool) -> None:
    assert ranges.is_url(text) is whether


def test_the_address_of_a_server_has_no_query() -> None:
    ranges.check_url("api_url", "", "https://e.example")
    ranges.check_url("api_url", "https://a.example/v1", "https://e.example")
    with pytest.raises(ValueError, match=r"^api_url: 'https://a\.example\?b' is no address; .* https://e\.example"):
        ranges.check_url("api_url", "https://a.example?b", "https://e.example")


@pytest.mark.parametrize(
    ("host", "right"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("localhost:80", False), ("http://a", False)],
)
def test_a_host_stands_without_its_port(host: str, right: bool) -> None:
    if right:
        ranges.check_host("host", host)
        return
    with pytest.raises(ValueError, match="^host: .* and the port as port"):
        ranges.check_host("host", host)


@pytest.mark.parametrize(
    ("first", "last", "right"), [(0, 0, True), (5, 9, True), (5, 5, True), (5, 0, False), (0, 5, False), (9, 5, False)]
)
def test_a_range_of_ports(first: int, last: int, right: bool) -> None:
    if right:
        ranges.check_ports(first, last)
        return
    with pytest.raises(ValueError, match="first_port and last_port go together"):
        ranges.check_ports(first, last)


def test_every_pattern_is_told_in_words() -> None:
    patterns = {value for name, value in vars(ranges).items() if name.isupper() and isinstance(value, str)}
    assert patterns == set(ranges.IN_WORDS)
