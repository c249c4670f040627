"""What parts hand over, by name and as JSON."""

import logging

import pytest

from voicepipe.base.takeover import TakeoverParts


def part(parts: TakeoverParts, name: str, given: list[str]) -> list[list[str]]:
    """A part that gives `given`; returns what it takes."""
    taken: list[list[str]] = []
    parts.join(name, list[str], lambda: given, taken.append)
    return taken


def test_a_part_takes_what_the_same_part_of_the_other_process_gives() -> None:
    old, new = TakeoverParts(), TakeoverParts()
    part(old, "calls", ["a", "b"])
    part(old, "only here", ["c"])
    taken = part(new, "calls", [])
    for name, state in old.given().items():
        new.taken(name, state)
    assert taken == [["a", "b"]]


def test_what_cannot_be_read_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    parts = TakeoverParts()
    taken = part(parts, "calls", [])
    with caplog.at_level(logging.WARNING):
        parts.taken("calls", b'{"of": "another version"}')
        parts.taken("calls", b"no JSON")
    assert taken == [] and caplog.text.count("calls cannot be read") == 2


def test_changes_are_published_once_another_process_has_taken_over() -> None:
    parts, given, published = TakeoverParts(), ["a"], list[tuple[str, bytes]]()
    part(parts, "calls", given)
    parts.changed("calls")
    assert not parts.is_handed_over
    parts.publish = lambda name, state: published.append((name, state))
    given.append("b")
    parts.changed("calls")
    parts.changed("unknown")
    assert parts.is_handed_over and published == [("calls", b'["a","b"]')]


def test_nothing_is_left_once_the_process_before_has_ended() -> None:
    parts = TakeoverParts()
    taken = part(parts, "calls", ["mine"])
    parts.empty()
    assert taken == [[]]


def test_a_part_that_adds_gets_what_is_new_alone_also_from_a_process_before_the_last() -> None:
    parts, published, taken = TakeoverParts(), list[tuple[str, bytes]](), list[list[str]]()
    parts.join("keys", list[str], lambda: ["old"], taken.append, adds=True)
    parts.add("keys", ["lost"])
    parts.publish = lambda name, state: published.append((name, state))
    parts.add("keys", ["new"])
    parts.taken("keys", b'["from before"]')
    parts.empty()
    assert published == [("keys", b'["new"]'), ("keys", b'["from before"]')]
    assert taken == [["from before"], []]


def test_changes_of_the_process_before_go_on_to_the_one_after() -> None:
    parts, published, have = TakeoverParts(), list[bytes](), list[str]()
    parts.join("calls", list[str], lambda: [*have, "mine"], lambda taken: have.__setitem__(slice(None), taken))
    parts.publish = lambda name, state: published.append(state)
    parts.taken("calls", b'["theirs"]')
    parts.empty()
    assert published == [b'["theirs","mine"]', b'["mine"]']
