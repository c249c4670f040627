"""POST /v1/upgrade: the operator has a PoP start its program anew, and the new process takes the calls."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import Unauthorized
from voicepipe.call_api import PopApi
from voicepipe.ingress.access import AccessControl, uncached, viewer

UPGRADE = "/v1/upgrade"


class Upgraded(msgspec.Struct, frozen=True):
    """Body of the answer, which comes once the new process takes calls."""

    pid: int
    """Of the new process."""
    version: str
    calls: int
    """Calls that go on in the process before."""


class UpgradeHttp:
    """The HTTP endpoint by which the operator upgrades a PoP."""

    def __init__(self, pop: PopApi, access: AccessControl) -> None:
        self._pop = pop
        self._access = access

    def routes(self) -> list[BaseRoute]:
        return [Route(UPGRADE, self.upgrade, methods=["POST"])]

    async def upgrade(self, request: Request) -> Response:
        """POST. 409 where the new process does not start; the PoP goes on as before then. Raises Unauthorized,
        UpgradeFailed."""
        if viewer(self._pop, request) is not None:
            raise Unauthorized("A tenant's key cannot upgrade a PoP: use the operator's (http.operator_key).")
        taken = await self._pop.successor.take_over()
        return uncached(Upgraded(taken.pid, taken.version, self._pop.health().calls))
