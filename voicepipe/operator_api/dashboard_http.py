"""The operator's dashboard over HTTP: its page, the script that draws its charts, and the figures as JSON; and the page
of kept calls (`/calls`), whose figures are in `records_http.py`."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from voicepipe.call_api import PopApi
from voicepipe.ingress.access import AccessControl, UnknownTurn, uncached, viewer
from voicepipe.ingress.api_keys import account
from voicepipe.ingress.wire_errors import WireError
from voicepipe.operator_api.pages import LargeFile, page

MINUTES = range(5, 181)
DEFAULT_MINUTES = "15"
A_WEEK = {"Cache-Control": "public, max-age=604800"}

Answer = Callable[[Request, str | None], msgspec.Struct]
"""Answers a request; the second argument is the tenant whose calls may be seen, as in `PopApi.viewer`."""


def routes(pop: PopApi, access: AccessControl, web: Path) -> list[BaseRoute]:
    """The routes of one PoP's dashboard; `web` is the folder of the pages."""

    def view(request: Request, tenant: str | None) -> msgspec.Struct:
        return pop.dashboard.view(tenant, minutes_of(request.query_params.get("minutes", DEFAULT_MINUTES)))

    def turn(request: Request, tenant: str | None) -> msgspec.Struct:
        found = pop.dashboard.turn(tenant, request.path_params["turn_id"])
        if found is None:
            raise UnknownTurn("This turn is not kept any more: only the last ones are.")
        return found

    served: list[BaseRoute] = [
        Route("/dashboard", page(web / "dashboard.html")),
        Route("/calls", page(web / "calls.html")),
        Route("/v1/dashboard", answering(pop, access, view)),
        Route("/v1/dashboard/turns/{turn_id}", answering(pop, access, turn)),
    ]
    script = web / "vendor" / "plotly.min.js"  # put there by build_hook.py
    if script.is_file():
        served.append(Route("/vendor/plotly.min.js", lambda request: LargeFile(script, headers=A_WEEK)))
    return served


def answering(pop: PopApi, access: AccessControl, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that needs a viewer's key, and counts on its account: figures are made anew for each request."""

    async def endpoint(request: Request) -> Response:
        tenant = viewer(pop, request)

        async def made() -> Response:
            return uncached(answer(request, tenant))

        return await access.carry_out(account(tenant), made())

    return endpoint


def minutes_of(text: str) -> int:
    """The length of the time axis. Raises WireError."""
    try:
        return MINUTES[MINUTES.index(int(text))]
    except ValueError:
        allowed = f"from {MINUTES[0]} to {MINUTES[-1]}"
        raise WireError("invalid_value", f"minutes must be a whole number {allowed}.", "minutes") from None
