"""On which subjects PoPs and directories talk."""

import msgspec
import pytest

from voicepipe.directory import subjects
from voicepipe.directory.bus import matches
from voicepipe.directory.subjects import Command, RoundTrip, pop_of


@pytest.mark.parametrize(
    ("pattern", "subject"),
    [
        (subjects.REPORTS, subjects.of_pop(subjects.REPORTS, "fra")),
        (subjects.GOODBYES, subjects.of_pop(subjects.GOODBYES, "fra")),
        (subjects.ROUND_TRIPS, subjects.of_pop(subjects.ROUND_TRIPS, "fra")),
        (subjects.ASSIGNMENTS, subjects.of_pop(subjects.ASSIGNMENTS, "fra")),
    ],
)
def test_each_subject_is_heard_by_its_pattern_alone(pattern: str, subject: str) -> None:
    others = {subjects.REPORTS, subjects.GOODBYES, subjects.ROUND_TRIPS, subjects.ASSIGNMENTS} - {pattern}
    assert matches(pattern, subject) and not any(matches(other, subject) for other in others)
    assert pop_of(subject) == "fra"


@pytest.mark.parametrize(
    "subject", [subjects.of_pop(subjects.SESSIONS, "fra"), subjects.of_pop(subjects.COMMANDS, "fra")]
)
def test_what_one_pop_is_told_names_it(subject: str) -> None:
    assert pop_of(subject) == "fra" and not matches(subject, subject.replace("fra", "lhr"))


@pytest.mark.parametrize("pop", ["", "fra 1", "<b>", "fra\n", "é"])
def test_a_name_that_no_pop_can_have_is_none(pop: str) -> None:
    assert pop_of(f"vp.pop.{pop}.report") is None


@pytest.mark.parametrize(
    "said",
    [
        b'{"network": "", "ms": 5}',
        b'{"network": "x", "ms": -1}',
        b'{"network": "x", "ms": 60001}',
        b'{"network": "%s", "ms": 5}' % (b"x" * 65),
    ],
)
def test_a_round_trip_that_cannot_be_is_refused(said: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(said, type=RoundTrip)


def test_a_pop_obeys_no_other_order() -> None:
    assert msgspec.json.decode(b'{"do": "drain"}', type=Command).do == "drain"
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"do": "fly"}', type=Command)
