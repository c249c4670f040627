"""Nodes of loopback with pods of the rendered deployment on them, and callers. Pauses are shorter, and engines are
scripted; calls are real."""

import asyncio
import copy
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import httpx
import pytest
import websockets

from tests.deploy.kubelet import Pod, Proxies
from tests.deploy.rendered import Object, named, rendered
from tests.fleet.caller import CLEAR
from tests.fleet.network import Host, Loopback
from tests.support.waiting import until

LAG_S = 0.5
"""After which proxies know of a change."""
PAUSE_S, DRAIN_S, GRACE_S = 4, 60, 90
"""In place of preStop's 10 s, a drain of 3660 s, and 3700 s of grace."""
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
    """Nodes of loopback, and the pods on them. `secrets` by their names."""

    def __init__(self, objects: list[Object], folder: Path, secrets: dict[str, dict[str, str]] | None = None) -> None:
        self.proxies = Proxies(LAG_S)
        self.pods: list[Pod] = []
        self.names: dict[str, str] = {}
        """Addresses of Services."""
        self.secrets = secrets or {}
        self._objects = objects
        self._folder = folder
        self._network = Loopback(folder)

    async def pop(self) -> Pod:
        """A PoP on a node of its own, behind the Service, that is ready."""
        made = await self.pod("voicepipe-pop")
        self.proxies.pods.append(made)
        return made

    async def pops(self, number: int) -> list[Pod]:
        """So many, started together."""
        return await asyncio.gather(*(self.pop() for _ in range(number)))

    async def pod(self, deployment: str, node: Host | None = None) -> Pod:
        """A pod that is ready."""
        node = node or self._network.host(f"{deployment}-{token_hex(3)}", "")
        names = self.names | {"0.0.0.0": node.address}
        made = Pod(node.name, node.address, self._objects, deployment, self.secrets, self._folder, names)
        self.pods.append(made)
        await made.start()
        await made.until_ready()
        return made


@asynccontextmanager
async def cluster(
    objects: list[Object], folder: Path, secrets: dict[str, dict[str, str]] | None = None
) -> AsyncIterator[Cluster]:
    """Its processes are gone at the end."""
    try:
        made = Cluster(objects, folder, secrets)
    except OSError as error:
        pytest.skip(str(error))
    following = asyncio.create_task(made.proxies.run())
    try:
        yield made
    finally:
        following.cancel()
        for each in made.pods:
            await each.lose()


class Caller:
    """A call by WebSocket, held until `hang_up` is set or its time is over. `end` is why it was over: "hung up",
    "refused" with the status, or "cut"."""

    def __init__(self, url: str, key: str, trust: ssl.SSLContext | None = None) -> None:
        self.hang_up = asyncio.Event()
        self.began = asyncio.Event()
        self.end = ""
        self.why = ""
        """What a refusal says."""
        self._url = url
        self._key = key
        self._trust = trust

    async def hold(self, seconds: float) -> str:
        headers = {"Authorization": f"Bearer {self._key}"}
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
            self.why = bytes(error.response.body or b"").decode(errors="replace")
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
    assert caller.began.is_set(), (caller.end, caller.why)
    return caller


async def calls(pod: Pod) -> int:
    """As its /healthz has it."""
    async with httpx.AsyncClient(trust_env=False) as client:
        return int((await client.get(f"http://{pod.address}:8080/healthz", timeout=30)).json()["calls"])


class DirectorySide:
    """A directory, as its callers and its operator reach it."""

    def __init__(self, pod: Pod, keys: dict[str, str]) -> None:
        self.pod = pod
        self._keys = keys
        self.trust = ssl.create_default_context()
        self.trust.check_hostname = False
        self.trust.verify_mode = ssl.CERT_NONE

    def caller(self) -> Caller:
        """One who is relayed."""
        return Caller(f"wss://{self.pod.address}:8443", self._keys["HARBOUR_HOUSE_KEY"], self.trust)

    async def rows(self) -> list[dict[str, Any]]:
        """Its PoPs."""
        async with httpx.AsyncClient(verify=self.trust, trust_env=False) as client:
            headers = {"Authorization": f"Bearer {self._keys['OPERATOR_KEY']}"}
            answer = await client.get(f"https://{self.pod.address}:8443/v1/pops", headers=headers, timeout=30)
            return list(answer.raise_for_status().json()["pops"])

    async def knows(self, what: Callable[[list[dict[str, Any]]], bool]) -> None:
        """Raises TimeoutError: it does not come to know."""
        async with asyncio.timeout(60):
            while not what(await self.rows()):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
