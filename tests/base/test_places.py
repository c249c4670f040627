"""Distances, and what they cost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.directory.reports import FRANKFURT, LONDON, TOKYO, VIRGINIA
from voicepipe.base.places import EARTH_KM, Place, distance_km, estimated_rtt_ms

places = st.builds(Place, st.floats(-90, 90), st.floats(-180, 180))


@pytest.mark.parametrize(("one", "other", "km"), [(FRANKFURT, LONDON, 636), (FRANKFURT, VIRGINIA, 6_540),
                                                  (FRANKFURT, TOKYO, 9_360)])  # fmt: skip
def test_distances_are_those_of_an_atlas(one: Place, other: Place, km: float) -> None:
    assert distance_km(one, other) == pytest.approx(km, rel=0.01)


def test_a_thousand_kilometres_are_21_ms() -> None:
    quarter = distance_km(Place(0, 0), Place(0, 90))
    assert estimated_rtt_ms(Place(0, 0), Place(0, 90)) == pytest.approx(30 + 0.021 * quarter)


@given(places, places)
def test_a_distance_is_the_same_both_ways_and_never_more_than_half_round_the_globe(one: Place, other: Place) -> None:
    assert distance_km(one, other) == pytest.approx(distance_km(other, one))
    assert 0 <= distance_km(one, other) <= EARTH_KM * 3.1416
