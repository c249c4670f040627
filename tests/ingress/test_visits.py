"""Who is dropped where connections are too many, and who never is."""

from voicepipe.ingress.visits import CUSTOMERS, NEWCOMERS, Room, Visit, Visits


class Building:
    """Visits whose drops are recorded."""

    def __init__(self, all: int = 1000, strangers: int = 100, each: int = 10) -> None:
        self.visits = Visits(Room(all, strangers, each), ["10.0.0.1"])
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
    assert admitted == all.burst, "in all"
    assert not building.visits.listens("192.0.2.2", 0)
    assert sum(building.visits.listens("192.0.2.1", 0) for _ in range(10_000)) == CUSTOMERS[0].burst
    empty = Building().visits
    assert sum(empty.listens("192.0.2.1", 0) for _ in range(10_000)) == each.burst
