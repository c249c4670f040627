"""Ids of calls, and whose they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.base import call_ids
from voicepipe.base.ranges import NAME


@given(st.from_regex(NAME, fullmatch=True))
def test_an_id_names_its_pop(pop: str) -> None:
    made = call_ids.new(pop)
    assert call_ids.pop_of(made) == pop
    assert made.endswith(call_ids.bare(made)) and len(call_ids.bare(made)) == 12


@pytest.mark.parametrize(
    "other", ["", "rtc_", "rtc_fra1", "rtc_FRA.0c5e77aa91f2", "rtc_fra1.0c5e77aa91f", "sess_1", "CA123"]
)
def test_what_is_no_id_names_none(other: str) -> None:
    assert call_ids.pop_of(other) is None
