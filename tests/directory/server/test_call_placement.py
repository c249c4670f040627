"""Which PoPs may be asked what is not about one call."""

import pytest

from tests.directory.reports import seen
from voicepipe.base.errors import NoPop
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.router import WantedCall
from voicepipe.directory.server.call_placement import askable


def asked(*pops: SeenPop, about: str = "", **wanted: object) -> list[str]:
    return [found.pop for found in askable(pops, WantedCall(kind="", **wanted), about)]  # type: ignore[arg-type]


def test_those_that_are_well_come_first() -> None:
    assert asked(seen("a", status="full"), seen("b"), seen("c", status="late"), seen("d")) == ["b", "d", "a", "c"]


def test_one_that_drains_or_is_silent_is_a_last_resort() -> None:
    draining, silent = seen("a", status="draining"), seen("b", silent=True)
    assert asked(draining, silent, seen("c", status="full")) == ["c"]
    assert asked(silent, draining) == ["a", "b"]


def test_nobody_outside_the_zone_is_asked() -> None:
    assert asked(seen("a", zone="us"), seen("b", zone="eu"), zone="eu") == ["b"]
    with pytest.raises(NoPop, match="'eu'"):
        asked(seen("a", zone="us"), seen("b", zone="eu", silent=True), zone="eu")


def test_a_pop_without_the_agents_of_the_tenant_is_not_asked() -> None:
    desk, clinic = seen("a"), seen("b", agents={"clinic": "de"})
    assert asked(desk, clinic, agents=("clinic", "sales")) == ["b"]
    with pytest.raises(NoPop, match="sales"):
        asked(desk, clinic, agents=("sales",))


def test_of_an_agent_know_those_that_have_it() -> None:
    desk, clinic = seen("a"), seen("b", agents={"clinic": "de"})
    assert asked(desk, clinic, about="clinic") == ["b"]
    assert asked(desk, clinic, about="nobody") == ["a", "b"], "either can say that there is none"
