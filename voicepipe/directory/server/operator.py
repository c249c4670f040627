"""What operators see and order in a fleet: GET /v1/pops, GET /v1/round-trips, POST /v1/pops/{id}/drain."""

import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import Unauthorized
from voicepipe.base.places import Place
from voicepipe.directory.directory import Directory
from voicepipe.directory.editions.directory_editions import DirectoryEditions
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.report import EditionState
from voicepipe.ingress.access import uncached
from voicepipe.ingress.api_keys import Tenants, is_key, offered
from voicepipe.observe.recent_turns import RecentTurns
from voicepipe.observe.tally import Tally

MOST_NETWORKS = 1000
"""Networks that are listed at most: more would hold up other requests."""


class PopRow(msgspec.Struct, frozen=True):
    """A PoP as operators see it."""

    pop: str
    region: str
    zone: str
    place: Place | None
    url: str
    status: str
    """As in its /healthz, or "silent": its lease is over."""
    calls: int
    coming: int
    """Calls that were assigned to it and have not begun."""
    slots: int
    predicted_ms: float
    budget_ms: float
    age_s: float
    """Seconds since its last report."""
    agents: list[str]
    model: str
    version: str
    share: float
    """The share of the calls that it would get otherwise; below 1 after its turns have failed."""
    weight: float
    price_per_hour: float
    recent: RecentTurns | None
    """None: its version does not report it."""
    hour: Tally | None
    """The tally of its last hour; None: its version does not report it, or the request did not ask for it, since it is
    as long as all the rest."""
    edition: EditionState | None
    """Its edition of agents, routes and tenants; None: it takes none."""


class OperatorAccess:
    """`key` opens it; without one it is open where the directory asks nobody for keys, that is, to its own machine."""

    def __init__(self, tenants: Tenants, key: str) -> None:
        self.tenants = tenants
        self._key = key

    def admits(self, request: Request) -> bool:
        """Whether the operator asks."""
        if self._key and is_key(self._key, offered(request) or ""):
            return True
        return not (self.tenants or self._key)

    def check(self, request: Request) -> None:
        """Raises Unauthorized."""
        if not self.admits(request):
            raise Unauthorized("Only this directory's operator may do this: send the key of http.operator_key_env.")


class OperatorApi:
    """The HTTP endpoints for operators of a fleet."""

    def __init__(self, directory: Directory, operators: OperatorAccess, editions: DirectoryEditions | None) -> None:
        self._directory = directory
        self._operators = operators
        self._editions = editions

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/pops", self.pops),
            Route("/v1/pops/{pop}/drain", self.drain, methods=["POST"]),
            Route("/v1/round-trips", self.round_trips),
        ]

    async def pops(self, request: Request) -> Response:
        """GET: the PoPs, and the calls that this directory placed lately, the newest first. `?hour=1`: with the tallies
        of their last hour."""
        self._operators.check(request)
        hour = request.query_params.get("hour") == "1"
        pops = self._directory.pops()
        kept = {seen.pop for seen in pops}
        answer: dict[str, Any] = {
            "now": time.time(),
            "cut_off": self._directory.is_cut_off,
            # Those that take part in choices; one of them is silent only where the directory may be cut off.
            "pops": [row_of(seen, hour=hour) for seen in pops],
            # Those that fell silent within the last day, without having said that they end.
            "lost": [row_of(seen, hour=hour) for seen in self._directory.heard() if seen.pop not in kept],
            "edition": self._edition(),
            # What is on trial, and how much of the calls went there.
            "canaries": self._directory.shares.counts(),
            "placed": list(reversed(self._directory.placed)),
        }
        return uncached(answer)

    async def round_trips(self, request: Request) -> Response:
        """GET: round trips that were learned from calls, networks with the latest calls first."""
        self._operators.check(request)
        rows = [row._asdict() for row in self._directory.learned(MOST_NETWORKS)]
        return uncached({"round_trips": rows})

    async def drain(self, request: Request) -> Response:
        """POST: the PoP takes no new calls, lets live ones end, and exits."""
        self._operators.check(request)
        pop = request.path_params["pop"]
        await self._directory.drain(pop)
        return JSONResponse({"pop": pop, "ordered": "drain"}, 202)

    def _edition(self) -> dict[str, Any] | None:
        """The newest edition for the fleet; None: this directory knows of none."""
        if self._editions is None or self._editions.current is None:
            return None
        its = self._editions.current
        return {
            "number": its.number,
            "digest": its.digest,
            "at": its.at,
            "problem": self._editions.problem,
            "directories": self._editions.differing(),
        }


def row_of(seen: SeenPop, *, hour: bool) -> PopRow:
    """The row of a PoP; `hour`: with its tally."""
    its = seen.condition
    return PopRow(
        pop=seen.pop,
        region=its.region,
        zone=its.zone,
        place=its.place,
        url=its.url,
        status="silent" if seen.silent else its.status,
        calls=its.calls,
        coming=seen.pending,
        slots=its.slots,
        predicted_ms=its.predicted_ms,
        budget_ms=its.budget_ms,
        age_s=round(seen.age_s, 2),
        agents=sorted(its.agents),
        model=its.model,
        version=its.version,
        share=its.share,
        weight=its.weight,
        price_per_hour=its.price_per_hour,
        recent=its.recent,
        edition=its.edition,
        hour=its.hour if hour else None,
    )
