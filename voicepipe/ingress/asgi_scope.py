"""What the HTTP server and the applications above it share: keys of a connection's scope, how long its end may take."""

from typing import Protocol

from starlette.requests import HTTPConnection

from voicepipe.ingress.visits import Visit

VISIT = "voicepipe.visit"
"""Key of the connection's `Visit` in the scope's state."""
REFUSALS = "voicepipe.refusals"
"""Key of the `RefusalLog` in the scope's state: the log says why a connection was closed."""
PEER = "voicepipe.peer"
"""Key of a WebSocket's `Peer` in the scope's extensions."""
LINGER = 5.0
"""Seconds that a call has to end once its caller is gone, and that a client has to take what is left for it."""


class Peer(Protocol):
    """A client's connection as the server below ASGI knows it, with the means to act on it."""

    received_at: float
    """Monotonic second at which bytes last arrived."""
    closed_for: str
    """Why the server has closed the connection; empty: it has not, or for no fault."""

    @property
    def address(self) -> str:
        """The IP address that the connection comes from."""

    @property
    def rtt_ms(self) -> float | None:
        """Round-trip time to the client in ms, the last one where the connection is closed. None: it is unknown, also
        where a proxy stands between."""

    def abort(self) -> None:
        """Drop the connection without waiting for the client to take what it was sent."""

    def take_at_most(self, message_bytes: int) -> None:
        """Limit the size of messages from now on."""


def peer_of(connection: HTTPConnection) -> Peer:
    """The `Peer` of a WebSocket."""
    peer: Peer = connection.scope["extensions"][PEER]
    return peer


def visit_of(connection: HTTPConnection) -> Visit | None:
    """The `Visit` of a connection. None: another server than ours serves it, such as a test's."""
    visit: Visit | None = connection.scope.get("state", {}).get(VISIT)
    return visit


def pays(connection: HTTPConnection) -> None:
    """As `Visit.pays`, for the visit of this connection."""
    if visit := visit_of(connection):
        visit.pays()


def take_visit(connection: HTTPConnection) -> Visit | None:
    """The visit of a WebSocket that is accepted before it is known whether its call gets a slot: it counts as a
    stranger's until `Visit.accepted`. None: another server than ours serves it, such as a test's."""
    visit: Visit | None = connection.scope.get("state", {}).pop(VISIT, None)
    return visit
