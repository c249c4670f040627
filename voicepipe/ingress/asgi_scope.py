"""What the server below ASGI and those above it agree on: keys of a connection's scope, how long its end may take."""

from typing import Protocol

from starlette.requests import HTTPConnection

from voicepipe.ingress.visits import Visit

VISIT = "voicepipe.visit"
"""Key of the connection's `Visit` in the scope's state."""
REFUSALS = "voicepipe.refusals"
"""Key of its door's `RefusalLog` there: the log tells why it was closed."""
PEER = "voicepipe.peer"
"""Key of a WebSocket's `Peer` in the scope's extensions."""
LINGER = 5.0
"""Seconds that a call has to end once its caller is gone, and that a client has to take what is left for it."""


class Peer(Protocol):
    """What only the server below ASGI knows of a connection and can do to it."""

    received_at: float
    """Monotonic second at which bytes last arrived."""
    closed_for: str
    """Why we have closed the connection; empty: we have not, or in peace."""

    @property
    def address(self) -> str:
        """The IP address that it comes from."""

    @property
    def rtt_ms(self) -> float | None:
        """A round trip to the client, the last one where the connection is closed. None: it is not known, also where a
        proxy stands between."""

    def abort(self) -> None:
        """Drop the connection without waiting for the client to take what it was sent."""

    def take_at_most(self, message_bytes: int) -> None:
        """No message may be longer from now on."""


def peer_of(connection: HTTPConnection) -> Peer | None:
    """Of a WebSocket. None: another server than ours asks, such as a test's."""
    peer: Peer | None = connection.scope.get("extensions", {}).get(PEER)
    return peer


def visit_of(connection: HTTPConnection) -> Visit | None:
    """The visit that this belongs to. None: another server than ours asks, such as a test's."""
    visit: Visit | None = connection.scope.get("state", {}).get(VISIT)
    return visit


def pays(connection: HTTPConnection) -> None:
    """As `Visit.pays`, of the visit that this belongs to."""
    if visit := visit_of(connection):
        visit.pays()


def take_visit(connection: HTTPConnection) -> Visit | None:
    """The visit that a WebSocket belongs to, for who accepts it and knows only later whether its call gets a place: it
    goes on to be a stranger's until `Visit.accepted`. None: another server than ours asks, such as a test's."""
    visit: Visit | None = connection.scope.get("state", {}).pop(VISIT, None)
    return visit
