"""What the demo's directory serves besides its own: an operator's page may stop a PoP as if it died, and start it."""

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.demo.hosts import DemoHost
from voicepipe.ingress.doors import UnknownPath


class HostsApi:
    """The endpoints. No keys: the demo's directory answers its own machine alone."""

    def __init__(self, hosts: Sequence[DemoHost]) -> None:
        self._hosts = {host.city.pop: host for host in hosts}

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/demo", self.list),
            Route("/v1/demo/pops/{pop}/start", self.start, methods=["POST"]),
            Route("/v1/demo/pops/{pop}/stop", self.stop, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        """GET: all hosts, also those whose PoP nobody hears of."""
        rows = [_row(host) for host in self._hosts.values()]
        return JSONResponse({"pops": rows}, headers={"Cache-Control": "no-store"})

    async def start(self, request: Request) -> Response:
        """POST: run the PoP again."""
        host = self._host(request)
        host.start()
        return JSONResponse({"pop": host.city.pop, "ordered": "start"}, 202)

    async def stop(self, request: Request) -> Response:
        """POST: the PoP dies."""
        host = self._host(request)
        host.stop()
        return JSONResponse({"pop": host.city.pop, "ordered": "stop"}, 202)

    def _host(self, request: Request) -> DemoHost:
        pop = request.path_params["pop"]
        if pop not in self._hosts:
            raise UnknownPath(f"The demo has no PoP {pop[:64]!r}; there are: {', '.join(self._hosts)}.")
        return self._hosts[pop]


def _row(host: DemoHost) -> dict[str, object]:
    latitude, longitude = host.city.place
    place = {"latitude": latitude, "longitude": longitude}
    return {"pop": host.city.pop, "city": host.city.name, "region": host.city.region, "place": place,
            "state": host.state}  # fmt: skip
