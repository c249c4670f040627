"""Who is dropped where connections are too many, and who never is."""

import pytest

from voicepipe.base.token_bucket import Rate
from voicepipe.ingress.visits import CUSTOMERS, NEWCOMERS, PROXIED, ConnectionLimits, Visit, Visits, VisitState, network


class Building:
    """Visits whose drops are recorded."""

    def __init__(self, all: int = 1000, strangers: int = 100, each: int = 10) -> None:
        self.visits = Visits(ConnectionLimits(all, strangers, each), ["10.0.0.1"])
        self.dropped: list[str] = []

    def come(self, source: str, name: str = "") -> Visit:
        visit = self.visits.come(source, lambda: self.dropped.append(name or source))
        assert visit
        return visit


def test_one_too_many_from_an_address_costs_the_one_that_has_waited_longest() -> None:
    building = Building(each=3)
    for name in "abcde":
        building.come("192.0.2.1", name)
    other = building.come("192.0.2.2", "other")
    assert building.dropped == ["a", "b"]
    building.visits.gone(other)
    assert len(building.visits) == 3


def test_who_asks_is_not_who_waits() -> None:
    building = Building(each=2)
    first = building.come("192.0.2.1", "first")
    building.come("192.0.2.1", "second")
    building.visits.progress(first)
    building.come("192.0.2.1", "third")
    assert building.dropped == ["second"]


def test_who_shows_a_key_is_not_counted_until_the_request_is_answered() -> None:
    building = Building(each=2)
    calls = [building.come("192.0.2.1", "call") for _ in range(2)]
    for call in calls:
        call.known("a")
        call.accepted()
    request = building.come("192.0.2.1", "request")
    request.known("a")
    for _ in range(5):
        building.come("192.0.2.1", "stranger")
    assert building.dropped == ["stranger"] * 3
    building.visits.progress(request)  # Its answer is sent: it may ask for more, and is the newest of three.
    building.come("192.0.2.1", "newest")
    assert building.dropped == ["stranger"] * 5
    for call in calls:
        call.left()
    assert len(building.visits) == 2


def test_what_moves_a_connection_from_state_to_state() -> None:
    building = Building(each=1)
    visit, second = building.come("192.0.2.1"), building.come("192.0.2.2")
    assert (visit.state, second.state) == (VisitState.STRANGER, VisitState.STRANGER)
    visit.known("a")
    second.known("a")
    assert (visit.state, second.state) == (VisitState.REQUEST, VisitState.STRANGER), "its tenant has one already"
    building.visits.progress(visit)
    second.known("a")
    assert (visit.state, second.state) == (VisitState.STRANGER, VisitState.REQUEST)
    second.accepted()
    assert (visit.state, second.state) == (VisitState.STRANGER, VisitState.CALL) and len(building.visits) == 2
    building.come("192.0.2.1")
    assert (visit.state, second.state) == (VisitState.OVER, VisitState.CALL) and building.dropped == ["192.0.2.1"]
    for late in (visit.accepted, lambda: visit.known("a"), lambda: building.visits.progress(visit), second.left):
        late()
    assert (visit.state, second.state) == (VisitState.OVER, VisitState.OVER) and len(building.visits) == 1


def test_one_tenant_does_not_hold_all_connections_by_requests() -> None:
    building = Building(strangers=5, each=5)
    for _ in range(40):
        building.come("10.0.0.1", "a's").known("a")
    assert len(building.visits) == 5 + 5
    building.come("10.0.0.1", "b's").known("b")
    assert set(building.dropped) == {"a's"}


def test_strangers_from_many_addresses_do_not_drop_the_only_one_of_another() -> None:
    building = Building(strangers=20, each=10)
    building.come("192.0.2.99", "honest")
    for number in range(200):
        building.come(f"192.0.2.{number % 5}", "idle")
    assert len(building.visits) == 20 and set(building.dropped) == {"idle"}


def test_connections_of_a_proxy_are_not_counted_by_address() -> None:
    building = Building(strangers=50, each=5)
    for _ in range(50):
        building.come("10.0.0.1")
    assert not building.dropped


def test_when_all_have_shown_a_key_nobody_else_comes_in() -> None:
    building = Building(all=2)
    for _ in range(2):
        building.come("192.0.2.1").accepted()
    assert building.visits.come("192.0.2.2", lambda: None) is None
    assert len(building.visits) == 2 and not building.visits.drop_one()


def test_what_strangers_use_up_is_not_missed_where_a_key_was_seen() -> None:
    building = Building()
    building.come("192.0.2.1").known("a")
    each, all = NEWCOMERS
    admitted = sum(building.visits.listens(f"198.51.{n % 200}.1", 0) for n in range(int(10 * all.burst)))
    assert all.burst / 2 < admitted <= all.burst, "in all"
    assert sum(building.visits.listens("192.0.2.1", 0) for _ in range(10_000)) == CUSTOMERS[0].burst
    empty = Building().visits
    assert sum(empty.listens("192.0.2.1", 0) for _ in range(10_000)) == each.burst


def let_in(visits: Visits, attackers: list[str], honest: list[str], rate: Rate, requests: int = 3) -> float:
    """Part of the requests of all who are honest that are let in while every attacker comes as often as one address
    alone may. The honest come one after the other within 5 s; their own requests are 0.2 s apart."""
    many = len(attackers)
    times = [(n / many / rate.per_s, attackers[n % many]) for n in range(int(5 * rate.per_s * many))]
    for n, who in enumerate(honest):
        times += [(0.0233 + 3.97 * n / len(honest) + 0.2 * again, who) for again in range(requests)]
    among = frozenset(honest)
    admitted = sum(visits.listens(who, now) and who in among for now, who in sorted(times))
    return admitted / (requests * len(honest))


@pytest.mark.parametrize(("many", "requests"), [(5, 3), (50, 3), (200, 1)])
def test_newcomers_get_in_while_many_addresses_come_as_often_as_they_may(many: int, requests: int) -> None:
    """Where attackers are so many that each of them has had little, too, a newcomer gets no more than they."""
    attackers = [f"198.51.100.{n}" for n in range(many)]
    honest = [f"192.0.2.{n}" for n in range(100)]
    assert let_in(Building().visits, attackers, honest, NEWCOMERS[0], requests) > 0.95


def test_no_tenant_uses_up_what_there_is_for_the_others() -> None:
    building = Building()
    attackers, honest = [f"198.51.100.{n}" for n in range(20)], [f"192.0.2.{n}" for n in range(100)]
    for who in attackers:
        building.come(who).known("greedy")
    for who in honest:
        building.come(who).known("modest")
    assert let_in(building.visits, attackers, honest, CUSTOMERS[0]) > 0.95


def test_an_attack_is_let_in_no_more_often_in_all() -> None:
    visits, (_, all) = Building().visits, NEWCOMERS
    admitted = sum(visits.listens(f"198.51.{n // 250}.{n % 250}", tick / 30) for tick in range(300) for n in range(60))
    assert all.per_s * 9 < admitted <= all.burst + all.per_s * 10


def test_an_ipv6_network_is_one_source() -> None:
    building = Building(each=3)
    each, _ = NEWCOMERS
    mine = [f"2001:db8:1:2::{n:x}" for n in range(1000)]
    assert sum(building.visits.listens(source, 0) for source in mine) == each.burst
    assert building.visits.listens("2001:db8:1:3::1", 0), "another network"
    for source in mine[:5]:
        building.come(source)
    assert building.dropped == mine[:2]
    building.come(mine[9]).known("a")
    assert building.visits.listens(mine[10], 0), "its neighbour is a customer"


def test_ipv4_addresses_differ_however_they_are_written() -> None:
    assert network("::ffff:192.0.2.1") == network("192.0.2.1") != network("::ffff:192.0.2.2")


def test_behind_a_proxy_it_is_clients_who_are_limited() -> None:
    building, proxy = Building(), "10.0.0.1"
    connection = building.come(proxy)
    each, _ = NEWCOMERS
    assert all(building.visits.listens(proxy, 0) for _ in range(10_000)), "connections of a proxy"
    assert sum(connection.asks("198.51.100.1", 0) for _ in range(10_000)) == each.burst
    assert connection.asks("192.0.2.1", 0), "another client's"
    connection.known("a")
    assert sum(connection.asks("192.0.2.1", 0) for _ in range(10_000)) == CUSTOMERS[0].burst
    assert sum(connection.asks(proxy, 0) for _ in range(10_000)) == PROXIED[0].burst, "the proxy does not say whose"
    assert not connection.asks("unknown", 0), "likewise"
    assert building.come("192.0.2.9").asks("198.51.100.1", 0), "no proxy: it was counted when it came"
