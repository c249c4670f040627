"""What operators see, order and push in a fleet: GET /v1/pops, GET /v1/round-trips, POST /v1/pops/{id}/drain,
DELETE /v1/pops/{id}, /v1/editions."""

import time
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import ConfigError, Unauthorized
from voicepipe.config.credentials import OperatorKeys, keys_of, operator_keys
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.rereads import Use
from voicepipe.directory.directory import Directory
from voicepipe.directory.editions.directory_editions import DirectoryEditions
from voicepipe.directory.editions.edition import TEXT_BYTES, Edition
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.ingress.access import UnknownRecord, body, decoded, uncached
from voicepipe.ingress.api_keys import Tenants, is_key, may_scrape, offered
from voicepipe.ingress.wire_errors import WireError

MOST_NETWORKS = 1000
"""Networks that are listed at most: more would hold up other requests."""


SHOWN = (
    "region", "zone", "place", "url", "calls", "slots", "predicted_ms", "budget_ms", "model", "version", "share",
    "weight", "price_per_hour", "recent", "edition",
)  # fmt: skip
"""Fields of a PoP's `Condition` that operators see unchanged."""
BODY_BYTES = 2 * TEXT_BYTES
"""Bytes of a push's body: JSON writes some letters with two."""
OFF = (
    "This directory takes no pushes: set directory.editions to a folder, in the file of each directory, and "
    "fleet.editions at each PoP."
)


class PushRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /v1/editions: either `files` or `like`."""

    files: dict[str, str] = {}
    """Texts by their paths, as in `edition.Edition`."""
    like: int = 0
    """The number of an earlier edition, to which the fleet is rolled back."""
    own_rules: bool = False
    """Each host goes back to the routes and tenants of its own file. Otherwise files without any keep those of the last
    push."""
    dry_run: bool = False
    """Only check at all hosts."""


class OperatorAccess:
    """The operator's key opens it; without one it is open where the directory asks nobody for keys, that is, to its own
    machine."""

    def __init__(self, tenants: Tenants, keys: OperatorKeys) -> None:
        self.tenants = tenants
        self._keys = keys

    def reread(self, config: DirectoryConfig) -> Use:
        """The keys, as `Rereads` has it."""
        keys = operator_keys(config.http, keys_of(config.tenants))

        def use() -> None:
            self._keys = keys

        return use

    def admits(self, request: Request) -> bool:
        """Whether the operator asks."""
        known = self._keys.operator
        if known and is_key(known, offered(request) or ""):
            return True
        return not (self.tenants or known)

    def may_scrape(self, key: str | None) -> bool:
        """As `api_keys.may_scrape`."""
        return may_scrape(self.tenants, self._keys, key)

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
            Route("/v1/pops/{pop}", self.forget, methods=["DELETE"]),
            Route("/v1/pops/{pop}/drain", self.drain, methods=["POST"]),
            Route("/v1/round-trips", self.round_trips),
            Route("/v1/editions", self.editions, methods=["GET", "POST"]),
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

    async def forget(self, request: Request) -> Response:
        """DELETE: a PoP that was taken away for good is not named any more. Raises NoPop: it reports."""
        self._operators.check(request)
        pop = request.path_params["pop"]
        if not self._directory.forget(pop):
            raise UnknownRecord(f"This directory knows of no PoP {pop[:200]!r}.")
        return JSONResponse({"pop": pop, "object": "pop.forgotten"})

    async def editions(self, request: Request) -> Response:
        """GET: the editions to which the fleet may be rolled back. POST: 201 and the new edition, or 400 and its
        problems, before any host has taken it."""
        self._operators.check(request)
        if self._editions is None:
            raise WireError("editions_off", OFF)
        if request.method == "GET":
            current = self._editions.current.number if self._editions.current else 0
            kept = [_edition_row(edition) for edition in await self._editions.kept()]
            return JSONResponse({"current": current, "editions": kept})
        asked = decoded(await body(request, BODY_BYTES), PushRequest)
        if bool(asked.files) == bool(asked.like):
            raise WireError("invalid_value", "Send either files, or like: the number of an earlier edition.", "files")
        try:
            if asked.like:
                pushed = await self._editions.roll_back(asked.like)
            else:
                pushed = await self._editions.push(asked.files, own_rules=asked.own_rules, dry=asked.dry_run)
        except ConfigError as error:
            raise WireError("edition_refused", str(error)) from None
        row = _edition_row(pushed.edition) | {"unheard": pushed.unheard}
        return JSONResponse(row, 200 if asked.dry_run else 201)

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


def row_of(seen: SeenPop, *, hour: bool) -> dict[str, Any]:
    """A PoP as operators see it: what it reports (`Condition`), "silent" as its status once its lease is over, calls
    that were assigned to it and have not begun, seconds since its last report. `hour`: with the tally of its last hour,
    which is as long as all the rest."""
    its = seen.condition
    return {name: getattr(its, name) for name in SHOWN} | {
        "pop": seen.pop,
        "status": "silent" if seen.silent else its.status,
        "coming": seen.pending,
        "age_s": round(seen.age_s, 2),
        "agents": sorted(its.agents),
        "hour": its.hour if hour else None,
    }


def _edition_row(edition: Edition) -> dict[str, Any]:
    return {"number": edition.number, "digest": edition.digest, "at": edition.at, "like": edition.like or None,
            "files": sorted(edition.files)}  # fmt: skip
