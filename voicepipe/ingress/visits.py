"""The connections to the HTTP server: they are strangers' until a key has been seen or a WebSocket accepted. Pure.

Strangers are counted by address and in all. Where one comes too many, no newcomer is sent away: the connection that has
gone longest without a request is dropped, of that address or of the one that has most. Whoever asks for something is
known within a round trip, and whoever waits does so at their own risk: idle connections lock nobody out.

What counts as one address is an IPv4 address, or an IPv6 network (/64): who has one address of it has them all.
"""

import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache

from voicepipe.base.token_bucket import Rate
from voicepipe.ingress.throttle import SOURCES, FairRate

EACH = 64
"""Strangers' connections from one address, and requests of one tenant, at a time."""
STRANGERS = 512
"""Strangers' connections in all, where descriptors allow it."""
NEWCOMERS = Rate(150, 30), Rate(250, 100)
"""Rate of connections and requests from one address, and from all of those that never brought a key. They are fewer
than there is room for, so that none is dropped before it could send a request."""
CUSTOMERS = Rate(600, 60), Rate(3000, 300)
"""The same rates for addresses that have brought a key: they do not share what strangers use up."""
PROXIED = Rate(2000, 200), Rate(4000, 400)
"""The same rates for proxies that do not say for whom they ask, and for programs at a proxy's address that ask for
themselves."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The numbers of connections that a server takes at a time."""

    all: int
    strangers: int = STRANGERS
    each: int = EACH

    @classmethod
    def within(cls, all: int) -> "ConnectionLimits":
        """The numbers within `all` connections, of which at most half are for strangers."""
        return cls(all, min(STRANGERS, all // 2), min(EACH, all // 4))


class VisitState(Enum):
    """The state of a connection, by which it is counted. All that are not over count in `ConnectionLimits.all`.

    before             what happens                        after
    (none)             `come`                              STRANGER
    STRANGER           `known`, with room for its tenant   REQUEST
    STRANGER, REQUEST  `accepted`                          CALL
    STRANGER, REQUEST  `progress`                          STRANGER, the newest
    any                closed (`gone`, `left`)             OVER
    STRANGER           dropped for another                 OVER
    """

    STRANGER = auto()
    """It carries no request, or one without a key. Counts by address and among all strangers. May be dropped."""
    REQUEST = auto()
    """It carries a request with a key. Counts by tenant."""
    CALL = auto()
    """It is a WebSocket that was accepted. It counts as its call does, by a slot."""
    OVER = auto()


class Visit:
    """One connection to the HTTP server, and what it counts as. `drop` ends it at once; None: it is closed."""

    def __init__(self, visits: "Visits", source: str, counted: str, drop: Callable[[], None]) -> None:
        self.source = source
        self.counted = counted
        """The address under which the connection counts."""
        self.client = counted
        """The address under which its request counts; behind a proxy it is another one."""
        self.drop: Callable[[], None] | None = drop
        self.state = VisitState.STRANGER
        self.tenant = ""
        """The tenant of a connection in the state REQUEST."""
        self._visits = visits

    @property
    def by_proxy(self) -> bool:
        """The connection is a proxy's, which forwards the requests of its clients."""
        return self.source in self._visits._proxies

    def asks(self, client: str, now: float) -> bool:
        """A request from `client` has come; returns whether it is answered. Requests that no proxy has forwarded were
        counted already."""
        if not self.by_proxy:
            return True
        try:
            self.client = self.source if client in self._visits._proxies else network(client)
        except ValueError:  # Whatever the proxy has named, it is no address.
            self.client = self.source
        return self._visits._admits(self.client, now)

    def known(self, tenant: str) -> None:
        """The request in progress came with this tenant's key. A tenant's requests beyond `ConnectionLimits.each` are
        served, but may be dropped."""
        self.pays()
        if self.state is VisitState.STRANGER and self._visits._has_room_for(tenant):
            self._visits._becomes(self, VisitState.REQUEST, tenant)

    def pays(self) -> None:
        """The request brought a secret of ours, such as a provider's signature: its address is no stranger's."""
        self._visits._pays(self.client)

    def accepted(self) -> None:
        """The WebSocket was accepted: it counts as its call does, and no more as a connection."""
        self.pays()
        self._visits._becomes(self, VisitState.CALL)

    def left(self) -> None:
        """The connection is closed."""
        self._visits.gone(self)


class Visits:
    """The connections to an HTTP server, counted and limited. `proxies`: addresses behind which there are many clients,
    so that connections are not counted by them."""

    def __init__(self, room: ConnectionLimits, proxies: Collection[str] = ()) -> None:
        self._room = room
        self._proxies = frozenset(proxies)
        self._strangers: dict[str, dict[Visit, None]] = {}
        """Strangers by address; the one that has gone longest without a request first."""
        self._requests: Counter[str] = Counter()
        """Requests by tenant."""
        self._many: Counter[VisitState] = Counter()
        """Connections by state, without those that are over."""
        self._newcomers, self._customers, self._proxied = FairRate(*NEWCOMERS), FairRate(*CUSTOMERS), FairRate(*PROXIED)
        self._paying: OrderedDict[str, None] = OrderedDict()
        """Addresses that have brought a key."""

    def __len__(self) -> int:
        return self._many.total()

    def listens(self, source: str, now: float) -> bool:
        """Whether one more connection or request from this address is read; it counts. A proxy's always is: its
        requests count by their clients (`asks`)."""
        return source in self._proxies or self._admits(network(source), now)

    def come(self, source: str, drop: Callable[[], None]) -> Visit | None:
        """A new connection, for which another may have been dropped; None: no room, every connection belongs to a key
        holder."""
        visit = Visit(self, source, source if source in self._proxies else network(source), drop)
        self._enter(visit)
        mine = self._strangers[visit.counted]
        while len(mine) > self._room.each and source not in self._proxies:
            self._drop_oldest(visit.counted)
        while self._many[VisitState.STRANGER] > self._room.strangers or len(self) > self._room.all:
            self.drop_one()
        return None if visit.state is VisitState.OVER else visit

    def drop_one(self) -> bool:
        """Drop a stranger of the address that has most of them; False: there are none."""
        if not self._strangers:
            return False
        self._drop_oldest(max(self._strangers, key=lambda source: len(self._strangers[source])))
        return True

    def progress(self, visit: Visit) -> None:
        """A request has come, or was answered: what comes next is a stranger's again, and the newest."""
        self._becomes(visit, VisitState.STRANGER)

    def gone(self, visit: Visit) -> None:
        """The connection is closed, by whichever side."""
        self._becomes(visit, VisitState.OVER)
        visit.drop = None

    # What visits ask.

    def _has_room_for(self, tenant: str) -> bool:
        return self._requests[tenant] < self._room.each

    def _pays(self, source: str) -> None:
        self._paying.pop(source, None)
        self._paying[source] = None
        if len(self._paying) > SOURCES:
            self._paying.popitem(last=False)

    def _admits(self, client: str, now: float) -> bool:
        if client in self._proxies:
            return self._proxied.admits(client, now)
        return (self._customers if client in self._paying else self._newcomers).admits(client, now)

    def _becomes(self, visit: Visit, state: VisitState, tenant: str = "") -> None:
        """Change its state; nothing happens once it is over."""
        if visit.state is VisitState.OVER:
            return
        self._leave(visit)
        visit.state, visit.tenant = state, tenant
        if state is not VisitState.OVER:
            self._enter(visit)

    def _enter(self, visit: Visit) -> None:
        self._many[visit.state] += 1
        if visit.state is VisitState.STRANGER:
            self._strangers.setdefault(visit.counted, {})[visit] = None
        elif visit.state is VisitState.REQUEST:
            self._requests[visit.tenant] += 1

    def _leave(self, visit: Visit) -> None:
        self._many[visit.state] -= 1
        if visit.state is VisitState.STRANGER:
            mine = self._strangers[visit.counted]
            del mine[visit]
            if not mine:
                del self._strangers[visit.counted]
        elif visit.state is VisitState.REQUEST:
            self._requests[visit.tenant] -= 1

    def _drop_oldest(self, counted: str) -> None:
        visit = next(iter(self._strangers[counted]))
        drop = visit.drop
        self.gone(visit)
        if drop:
            drop()


@lru_cache(SOURCES)
def network(address: str) -> str:
    """The network by which an IP address counts: IPv4 as it is, IPv6 as its /64. Raises ValueError."""
    ip = ipaddress.ip_address(address)
    if ip.version == 4:
        return address
    return str(ip.ipv4_mapped or ipaddress.IPv6Address(int(ip) >> 64 << 64))
