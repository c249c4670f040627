"""Editions over HTTP: POST /v1/editions pushes one, GET lists those to which the fleet may be rolled back."""

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import ConfigError
from voicepipe.directory.editions.directory_editions import DirectoryEditions
from voicepipe.directory.editions.edition import TEXT_BYTES, Edition
from voicepipe.directory.server.operator import OperatorAccess
from voicepipe.ingress.access import body, decoded
from voicepipe.ingress.wire_errors import WireError

BODY_BYTES = 2 * TEXT_BYTES
"""Bytes of a request's body: JSON writes some letters with two."""
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


class EditionsApi:
    """The HTTP endpoints for editions, for operators."""

    def __init__(self, operators: OperatorAccess, editions: DirectoryEditions | None) -> None:
        self._operators = operators
        self._editions = editions

    def routes(self) -> list[BaseRoute]:
        return [Route("/v1/editions", self.editions, methods=["GET", "POST"])]

    async def editions(self, request: Request) -> Response:
        """POST: 201 and the new edition, or 400 and its problems, before any host has taken it."""
        self._operators.check(request)
        if self._editions is None:
            raise WireError("editions_off", OFF)
        if request.method == "GET":
            current = self._editions.current.number if self._editions.current else 0
            kept = [_row(edition) for edition in await self._editions.kept()]
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
        return JSONResponse(_row(pushed.edition) | {"unheard": pushed.unheard}, 200 if asked.dry_run else 201)


def _row(edition: Edition) -> dict[str, Any]:
    return {"number": edition.number, "digest": edition.digest, "at": edition.at, "like": edition.like or None,
            "files": sorted(edition.files)}  # fmt: skip
