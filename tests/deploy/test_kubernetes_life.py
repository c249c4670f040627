"""How the deployment behaves, with real PoPs, directories and a NATS server: readiness, rolling update, scale-in, a
lost node. They are started, probed and ended as kubelets do, by what the rendered objects say; only pauses are shorter,
and engines scripted. Calls are real."""

import asyncio
import copy
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.deploy.kubelet import Pod, Proxies, first_to_end
from tests.deploy.rendered import Object, named, needs_kubectl, rendered
from tests.deploy.test_deletion_cost import FakeApi, deletion_cost, pod
from tests.directory.nats_server import needs_nats
from tests.fleet.caller import CLEAR
from tests.fleet.network import Loopback
from tests.support.waiting import until
from voicepipe.serving import lan

pytestmark = [needs_kubectl, pytest.mark.e2e]
LAG_S = 1.0
"""After which proxies know of a change."""
PAUSE_S, DRAIN_S, GRACE_S = 2, 60, 90
"""In place of preStop's 10 s, a drain of 3660 s, and 3700 s of grace."""
TENANT, OPERATOR, METRICS, BUS = "tenant-key", "operator-key", "metrics-key", "x-bus-password"
SCRIPTED = f"""
[pop]
agents = "/etc/voicepipe/agents"
default_agent = "reception"
drain_ms = {1000 * DRAIN_S}
budget_ms = 600000
loop_lag_ms = 60000

[endpoint]
model = ""

[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""
POP = {"METRICS_KEY": METRICS, "OPERATOR_KEY": OPERATOR, "HARBOUR_HOUSE_KEY": TENANT, "BUS_PASSWORD": BUS}


def shortened(part: str, slots: int = 8) -> list[Object]:
    """The rendered objects, with shorter pauses, scripted engines and so many slots."""
    objects = copy.deepcopy(list(rendered(part)))
    for each in objects:
        if each["kind"] == "Deployment":
            spec = each["spec"]["template"]["spec"]
            spec["terminationGracePeriodSeconds"] = GRACE_S
            for container in spec["containers"]:
                if "lifecycle" in container:
                    container["lifecycle"]["preStop"]["exec"]["command"][-1] = str(PAUSE_S)
    data = named(objects, "ConfigMap", "voicepipe-config")["data"]
    data["config.toml"] = SCRIPTED
    data["pop.toml"] = data["pop.toml"].replace("slots = 8 ", f"slots = {slots} ")
    return objects


class Cluster:
    """Nodes of loopback, and the pods on them."""

    def __init__(self, objects: list[Object], secrets: dict[str, dict[str, str]], folder: Path) -> None:
        self.objects = objects
        self.proxies = Proxies(LAG_S)
        self.pods: list[Pod] = []
        self.names: dict[str, str] = {}
        """Addresses of Services."""
        self._secrets = secrets
        self._folder = folder
        self._network = Loopback(folder)

    async def pop(self) -> Pod:
        """A PoP on a node of its own, behind the Service, that is ready."""
        made = await self.pod("voicepipe-pop")
        self.proxies.pods.append(made)
        return made

    async def pod(self, deployment: str) -> Pod:
        """A pod that is ready."""
        host = self._network.host(f"{deployment}-{len(self.pods)}", "here")
        names = self.names | {"0.0.0.0": host.address}
        made = Pod(host.name, host.address, self.objects, deployment, self._secrets, self._folder, names)
        self.pods.append(made)
        await made.start()
        await made.until_ready()
        return made


@asynccontextmanager
async def cluster(objects: list[Object], secrets: dict[str, dict[str, str]], folder: Path) -> AsyncIterator[Cluster]:
    """Its processes are gone at the end."""
    try:
        made = Cluster(objects, secrets, folder)
    except OSError as error:
        pytest.skip(str(error))
    following = asyncio.create_task(made.proxies.run())
    try:
        yield made
    finally:
        following.cancel()
        for each in made.pods:
            await each.lose()


@pytest.fixture
def secrets() -> dict[str, dict[str, str]]:
    """Of a region without a directory."""
    return {"voicepipe-pop": POP}


class Caller:
    """A call by WebSocket, held until `hang_up` is set or its time is over. `end` is why it was over: "hung up",
    "refused" with the status, or "cut"."""

    def __init__(self, url: str, trust: ssl.SSLContext | None = None) -> None:
        self.hang_up = asyncio.Event()
        self.began = asyncio.Event()
        self.end = ""
        self._url = url
        self._trust = trust

    async def hold(self, seconds: float) -> str:
        headers = {"Authorization": f"Bearer {TENANT}"}
        try:
            async with websockets.connect(
                f"{self._url}/v1/realtime", additional_headers=headers, proxy=None, ssl=self._trust, open_timeout=60,
                ping_interval=None,
            ) as socket:  # fmt: skip
                await socket.recv()
                self.began.set()
                over = asyncio.create_task(asyncio.wait_for(self.hang_up.wait(), seconds))
                while not over.done():
                    await socket.send(CLEAR)
                    await asyncio.wait_for(socket.recv(), 60)
                    await asyncio.wait({over}, timeout=0.3)
                with suppress(TimeoutError):
                    await over
            self.end = "hung up"
        except websockets.InvalidStatus as error:
            self.end = f"refused {error.response.status_code}"
        except (OSError, websockets.ConnectionClosed, websockets.InvalidMessage) as error:
            self.end = "cut" if self.began.is_set() else f"refused: {type(error).__name__}"
        return self.end


def url(pod: Pod) -> str:
    """Where a PoP takes WebSockets."""
    return f"ws://{pod.address}:8080"


async def begun(caller: Caller, held: list[asyncio.Task[str]], seconds: float = 120.0) -> Caller:
    """Its call has begun, and goes on in a task."""
    task = asyncio.create_task(caller.hold(seconds))
    held.append(task)
    await until(lambda: caller.began.is_set() or task.done())
    assert caller.began.is_set(), caller.end
    return caller


async def calls(pod: Pod) -> int:
    """As its /healthz has it."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return int((await client.get(f"http://{pod.address}:8080/healthz", timeout=30)).json()["calls"])


async def arriving(proxies: Proxies, over: asyncio.Event) -> list[str]:
    """Callers by the Service, one after another and each for a while; how their calls ended."""
    callers: list[asyncio.Task[str]] = []
    while not over.is_set():
        endpoints = proxies.endpoints
        if endpoints:
            one = endpoints[len(callers) % len(endpoints)]
            callers.append(asyncio.create_task(Caller(url(one)).hold(0.8)))
        await asyncio.sleep(0.15)
    return await asyncio.gather(*callers)


async def test_a_rolling_update_cuts_no_call_and_refuses_none(
    tmp_path: Path, secrets: dict[str, dict[str, str]]
) -> None:
    async with cluster(shortened("overlays/cpu", slots=60), secrets, tmp_path) as it:
        old = [await it.pop(), await it.pop()]
        await until(lambda: len(it.proxies.endpoints) == 2)
        held: list[asyncio.Task[str]] = []
        long = [await begun(Caller(url(each)), held) for each in old for _ in range(2)]
        over = asyncio.Event()
        arrived = asyncio.create_task(arriving(it.proxies, over))
        ending = []
        for each in old:  # maxSurge 1, maxUnavailable 0: a new one is ready before an old one begins to end
            await it.pop()
            await asyncio.sleep(LAG_S)
            ending.append(asyncio.create_task(each.delete()))
            await asyncio.sleep(PAUSE_S + 1)
            assert each.process.runs and await calls(each) >= 2, "it drains while it has calls"
        assert all(each not in it.proxies.endpoints for each in old)
        before = [await calls(each) for each in old]
        await asyncio.sleep(1.5)
        assert [await calls(each) for each in old] == before == [2, 2], "nobody is sent to a PoP that drains"
        for caller in long:
            caller.hang_up.set()
        await asyncio.gather(*ending)
        over.set()
        ends = await arrived
        assert await asyncio.gather(*held) == ["hung up"] * 4
        assert len(ends) > 10 and set(ends) == {"hung up"}, ends
        assert [(each.process.status, each.killed, each.restarts) for each in old] == [(0, False, 0)] * 2


async def test_without_the_pause_of_pre_stop_callers_are_refused(
    tmp_path: Path, secrets: dict[str, dict[str, str]]
) -> None:
    """As a PoP drains from SIGTERM on, and proxies do not know it yet: why preStop does not order it to drain."""
    objects = shortened("overlays/cpu")
    named(objects, "Deployment", "voicepipe-pop")["spec"]["template"]["spec"]["containers"][0].pop("lifecycle")
    async with cluster(objects, secrets, tmp_path) as it:
        one = await it.pop()
        held: list[asyncio.Task[str]] = []
        caller = await begun(Caller(url(one)), held)
        ending = asyncio.create_task(one.delete())
        await until(lambda: not one.ready)  # the probe goes on
        assert await Caller(url(one)).hold(1) == "refused 503"
        caller.hang_up.set()
        await ending
        assert await held[0] == "hung up" and one.process.status == 0


async def test_a_call_that_outlasts_the_grace_period_is_cut_then_and_not_before(
    tmp_path: Path, secrets: dict[str, dict[str, str]]
) -> None:
    objects = shortened("overlays/cpu")
    named(objects, "Deployment", "voicepipe-pop")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 5
    async with cluster(objects, secrets, tmp_path) as it:
        one = await it.pop()
        held: list[asyncio.Task[str]] = []
        await begun(Caller(url(one)), held)
        ending = asyncio.create_task(one.delete())
        await asyncio.sleep(3)
        assert not held[0].done()
        await ending
        assert one.killed and await held[0] == "cut"


def write_costs(pods: list[Pod]) -> None:
    """A round of the script that sets deletion costs."""
    api = FakeApi(*(pod(each.name, each.address) for each in pods))
    with httpx.Client(trust_env=False, timeout=30) as client:
        deletion_cost.write_costs(api.client, client, "voicepipe", "app=pop")
    for name, cost in api.costs().items():
        next(each for each in pods if each.name == name).annotations[deletion_cost.COST] = cost


async def test_scale_in_ends_the_emptiest_pop_and_cuts_no_call(
    tmp_path: Path, secrets: dict[str, dict[str, str]]
) -> None:
    async with cluster(shortened("overlays/cpu"), secrets, tmp_path) as it:
        pops = [await it.pop() for _ in range(3)]
        held: list[asyncio.Task[str]] = []
        callers = [await begun(Caller(url(pops[number])), held) for number in (0, 0, 2)]
        await asyncio.to_thread(write_costs, pops)
        assert [each.annotations[deletion_cost.COST] for each in pops] == ["2", "0", "1"]
        for _ in range(2):  # from three to one
            left = [each for each in pops if not each.terminating]
            chosen = first_to_end(left, deletion_cost.COST)
            if chosen is pops[2]:
                callers[2].hang_up.set()
            await chosen.delete()
        assert [each.terminating for each in pops] == [False, True, True]
        assert not held[0].done() and not held[1].done() and await held[2] == "hung up"
        for caller in callers:
            caller.hang_up.set()
        assert await asyncio.gather(*held) == ["hung up"] * 3


# --- behind a directory


@pytest.fixture
def fleet_secrets(tmp_path: Path, secrets: dict[str, dict[str, str]]) -> Iterator[dict[str, dict[str, str]]]:
    """Of a region with a directory."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    pem = lan.certificate(tmp_path / "tls.pem", {"directory.example"}).read_text()
    tls = {"tls.crt": pem, "tls.key": pem}
    yield secrets | {
        "voicepipe-fleet": {"directory.pub.pem": public.decode()},
        "voicepipe-directory-key": {"directory.pem": private.decode()},
        "voicepipe-directory": {"HARBOUR_HOUSE_KEY": TENANT, "OPERATOR_KEY": OPERATOR, "BUS_PASSWORD": "x-directory"},
        "voicepipe-directory-tls": tls,
        "voicepipe-nats": {"POPS_PASSWORD": BUS, "DIRECTORY_PASSWORD": "x-directory"},
        "voicepipe-nats-tls": tls | {"ca.crt": pem},
    }


@asynccontextmanager
async def region(
    secrets: dict[str, dict[str, str]], folder: Path, slots: int = 8
) -> AsyncIterator[tuple[Cluster, "DirectorySide"]]:
    """The region eu: its NATS server, a directory, and two PoPs that it knows."""
    async with cluster(shortened("overlays/two-regions/eu", slots), secrets, folder) as it:
        nats = await it.pod("nats")
        it.names["nats.voicepipe-eu.svc"] = nats.address
        await it.pop()
        await it.pop()
        directory = DirectorySide(await it.pod("voicepipe-directory"))
        await directory.knows(lambda rows: [row["status"] for row in rows].count("ok") == 2)
        yield it, directory


class DirectorySide:
    """A directory, as its callers and its operator reach it."""

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.trust = ssl.create_default_context()
        self.trust.check_hostname = False
        self.trust.verify_mode = ssl.CERT_NONE

    def caller(self) -> Caller:
        """One who is relayed."""
        return Caller(f"wss://{self.pod.address}:8443", self.trust)

    async def rows(self) -> list[dict[str, Any]]:
        """Its PoPs."""
        async with httpx.AsyncClient(verify=self.trust, trust_env=False) as client:
            headers = {"Authorization": f"Bearer {OPERATOR}"}
            answer = await client.get(f"https://{self.pod.address}:8443/v1/pops", headers=headers, timeout=30)
            return list(answer.raise_for_status().json()["pops"])

    async def knows(self, what: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Raises TimeoutError: it does not come to know."""
        async with asyncio.timeout(60):
            while not what(await self.rows()):  # noqa: ASYNC110
                await asyncio.sleep(0.1)


@needs_nats
async def test_callers_of_a_lost_node_get_another_pop_and_a_drained_pop_refuses_none(
    tmp_path: Path, fleet_secrets: dict[str, dict[str, str]]
) -> None:
    async with region(fleet_secrets, tmp_path) as (it, directory):
        first, second = it.proxies.pods
        held: list[asyncio.Task[str]] = []
        await begun(directory.caller(), held)
        lost, left = (first, second) if await calls(first) else (second, first)
        await lost.lose()
        async with asyncio.timeout(60):
            assert await held[0] == "cut"
        again = await begun(directory.caller(), held)
        assert await calls(left) == 1, (
            "who calls again is answered by another PoP, though the dead one may still be named"
        )

        new = await it.pop()
        await directory.knows(lambda rows: any(row["pop"] == new.name and row["status"] == "ok" for row in rows))
        ending = asyncio.create_task(left.delete())
        await asyncio.sleep(PAUSE_S)
        later = [await begun(directory.caller(), held) for _ in range(4)]
        await directory.knows(lambda rows: any(row["pop"] == left.name and row["status"] == "draining" for row in rows))
        assert await calls(new) + await calls(left) == 5 and not held[1].done()
        more = [await begun(directory.caller(), held) for _ in range(3)]
        assert await calls(new) >= 3, "nobody is sent to a PoP that drains"
        for caller in (again, *later, *more):
            caller.hang_up.set()
        await ending
        assert await asyncio.gather(*held[1:]) == ["hung up"] * 8
        assert (left.process.status, left.killed) == (0, False)


@needs_nats
async def test_behind_a_directory_a_full_pop_is_ready_and_does_not_end_before_an_empty_one(
    tmp_path: Path, fleet_secrets: dict[str, dict[str, str]]
) -> None:
    async with region(fleet_secrets, tmp_path, slots=1) as (it, directory):
        pops = it.proxies.pods
        held: list[asyncio.Task[str]] = []
        caller = await begun(directory.caller(), held)
        full, _ = pops if await calls(pops[0]) else reversed(pops)
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.get(f"http://{full.address}:8080/readyz")
        assert (answer.status_code, json.loads(answer.text)["status"]) == (503, "full")
        await asyncio.sleep(2)  # longer than its probe's period here
        await asyncio.to_thread(write_costs, pops)
        assert full.ready and first_to_end(pops, deletion_cost.COST) is not full
        caller.hang_up.set()
        assert await held[0] == "hung up"


@needs_nats
async def test_a_directory_that_loses_nats_stays_ready_and_places_calls(
    tmp_path: Path, fleet_secrets: dict[str, dict[str, str]]
) -> None:
    async with region(fleet_secrets, tmp_path) as (it, directory):
        await it.pods[0].lose()
        await asyncio.sleep(4)
        held: list[asyncio.Task[str]] = []
        caller = await begun(directory.caller(), held)
        assert directory.pod.ready and directory.pod.restarts == 0
        caller.hang_up.set()
        assert await held[0] == "hung up"
