"""What the server below ASGI has put into a connection's scope."""

from typing import Any

from starlette.requests import HTTPConnection

from voicepipe.ingress.asgi_scope import PEER, VISIT, pays, peer_of, take_visit, visit_of
from voicepipe.ingress.visits import CUSTOMERS, NEWCOMERS, ConnectionLimits, Visit, Visits, VisitState


def visited() -> tuple[HTTPConnection, Visit]:
    visit = Visits(ConnectionLimits.within(100), ()).come("192.0.2.1", lambda: None)
    assert visit
    return connection(state={VISIT: visit}), visit


def connection(**scope: Any) -> HTTPConnection:
    return HTTPConnection({"type": "websocket", "headers": [], **scope})


def test_a_visit_is_looked_at_and_may_be_taken_once() -> None:
    here, visit = visited()
    assert visit_of(here) is visit and visit_of(here) is visit
    assert take_visit(here) is visit
    assert visit_of(here) is None and take_visit(here) is None
    assert visit.state is VisitState.STRANGER, "its call has no place yet"


def test_who_brings_a_secret_of_ours_is_no_stranger_any_more() -> None:
    visits = Visits(ConnectionLimits.within(100), ())
    visit = visits.come("192.0.2.1", lambda: None)
    pays(connection(state={VISIT: visit}))
    admitted = sum(visits.listens("192.0.2.1", 1000.0) for _ in range(1000))
    others = sum(visits.listens("192.0.2.2", 1000.0) for _ in range(1000))
    assert (admitted, others) == (CUSTOMERS[0].burst, NEWCOMERS[0].burst)


def test_another_server_than_ours_knows_nothing_of_it() -> None:
    bare = connection()
    assert visit_of(bare) is None and take_visit(bare) is None
    pays(bare)


def test_a_websockets_peer_is_the_servers_own() -> None:
    peer = object()
    assert peer_of(connection(extensions={PEER: peer})) is peer
