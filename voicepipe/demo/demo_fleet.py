"""`voicepipe demo --pops`: a directory and several PoPs in this process, with the engines of one and distances that are
only estimated, and one spoken call that the directory sends to the nearest of them."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from msgspec.structs import replace
from rich.console import Console
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from latency_probes.realtime import RealtimeCaller
from latency_probes.via import Via
from voicepipe.config import Config
from voicepipe.config.agent_store import open_agents
from voicepipe.config.directory_config import DirectoryConfig, DirectorySection
from voicepipe.demo import ROOM, calling, problem_of, show, spoken
from voicepipe.demo.hosts import CITIES, DemoHost, PopCity, configured
from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.directory import PlacedCall
from voicepipe.directory.router import ChoiceReason
from voicepipe.directory.server.directory_http import DirectoryHealth
from voicepipe.directory.server.run import serve
from voicepipe.ingress.access import UnknownPath
from voicepipe.pop.running import engines_for
from voicepipe.serving import runtime

PARIS = (48.9, 2.4)
"""The place of the demo's caller."""
WHY: dict[ChoiceReason, str] = {
    "nearest": "the nearest that answers in time",
    "shares": "nearly as near as the nearest, which is filling",
    "limited": "it gets a share of the calls, and this is one of them",
    "least late": "no PoP would answer in time: this one comes closest",
}


class _Pops(msgspec.Struct):
    """The part of GET /v1/pops that is read here."""

    placed: list[PlacedCall]


async def run(config: Config, pops: int, began: float, *, once: bool) -> int:
    """Start, call, show; then stay up until a signal. With `once`: end after the call, 1 if the answer was wrong.
    `config.http` is the directory's. `began`: monotonic seconds at which the command was given."""
    console = Console(highlight=False)
    url = runtime.url(config.http)
    async with standing(config, pops) as hosts, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        await _heard_of(client, pops)
        cities = [host.city for host in hosts]
        took_s = time.monotonic() - began
        console.print(f"ready in {took_s:.1f} s: a directory at [bold]{url}[/], and {_listed(cities)}")
        with calling(console):
            caller = RealtimeCaller(url, ROOM, seed=0, via=Via(url, "websocket", place=PARIS))
            result = await spoken(caller)
        problem = problem_of(result, own_agent=False)
        show(result, problem, config.pop.budget_ms, console)
        assert caller.timeline.route  # It was placed, since it was held.
        listed = msgspec.json.decode((await client.get("/v1/pops")).content, type=_Pops)
        console.print(taken(listed.placed[0], caller.timeline.route.pop, cities))
        if once:
            return 1 if problem else 0
        console.print(
            f"\nOpen [bold]{url}/map[/]: say where the caller is, stop a PoP, and see where the next call goes.\n"
            f"Open [bold]{url}[/] and talk to the PoP that is chosen. Ctrl-C stops."
        )
        return await runtime.forever()


@asynccontextmanager
async def standing(config: Config, pops: int) -> AsyncIterator[list[DemoHost]]:
    """Yields when a directory at `config.http` and so many PoPs beside it answer. Raises ConfigError, EngineError."""
    agents = await asyncio.to_thread(open_agents, config)
    with tempfile.TemporaryDirectory(prefix="voicepipe-demo-") as folder:
        private, public = _keys(Path(folder))
        section = DirectorySection(key=str(private), place=CITIES[0].place)
        config = replace(config, records=replace(config.records, folder=folder))
        async with engines_for(config, agents) as engines, asyncio.TaskGroup() as group:
            bus, serving = MemoryBus(), asyncio.Event()
            hosts = [DemoHost(city, configured(config, city, public), bus, engines) for city in CITIES[:pops]]
            directory = serve(DirectoryConfig(section, http=config.http), serving, bus, HostsApi(hosts).routes())
            jobs = [group.create_task(job) for job in (directory, *(host.run() for host in hosts))]
            try:
                await serving.wait()
                for host in hosts:
                    await host.answers.wait()
                yield hosts
            finally:
                for job in jobs:
                    job.cancel()


async def _heard_of(client: httpx.AsyncClient, pops: int) -> None:
    """Returns when the directory has reports of so many PoPs that take calls, a second or two after they do."""
    while msgspec.json.decode((await client.get("/healthz")).content, type=DirectoryHealth).pops < pops:  # noqa: ASYNC110
        await asyncio.sleep(0.05)


def taken(placed: PlacedCall, took: str, cities: Sequence[PopCity]) -> str:
    """Print where the directory sent the caller in Paris, and why. `took`: the PoP that answered."""
    first, others = placed.pop, placed.others
    city = next(city.name for city in cities if city.pop == first)
    lines = [
        f"\nThe directory sent the caller in Paris to [bold]{first}[/] in {city}: {WHY[placed.why]}.",
        f"Really there, they would hear answers {placed.near_ms:.0f} ms later: the round trip, as reckoned from the "
        "distance, and their own buffer.",
    ]
    if took != first:
        lines.append(f"{first} did not let them in, so {took} took the call.")
    elif others:
        lines.append(f"Had it not let them in: {', then '.join(others)}.")
    return "\n".join(lines)


def _listed(cities: Sequence[PopCity]) -> str:
    return ", ".join(f"{city.pop} ({city.name})" for city in cities)


def _keys(folder: Path) -> tuple[Path, Path]:
    """A directory's key for this run, private and public, in files of this user's."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / "directory.pem", folder / "directory.pub.pem"
    private.touch(0o600)
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


class HostsApi:
    """Endpoints of the demo's directory besides its own, by which a page stops a PoP as if it died, and starts it. No
    keys: the demo's directory answers its own machine only."""

    def __init__(self, hosts: Sequence[DemoHost]) -> None:
        self._hosts = {host.city.pop: host for host in hosts}

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/v1/demo", self.list),
            Route("/v1/demo/pops/{pop}/start", self.start, methods=["POST"]),
            Route("/v1/demo/pops/{pop}/stop", self.stop, methods=["POST"]),
        ]

    async def list(self, request: Request) -> Response:
        """GET: all hosts, also those whose PoPs do not report."""
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
