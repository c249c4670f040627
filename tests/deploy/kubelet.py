"""A kubelet with processes of this machine in place of containers: it starts a pod as its manifest says, probes it, and
ends it by preStop, SIGTERM, and SIGKILL after the grace period. A pod's address is one of loopback."""

import asyncio
import os
import re
import signal
import sys
import time
from asyncio.subprocess import PIPE, STDOUT
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.rendered import Object, containers, named, written
from tests.directory.nats_server import PROGRAM
from tests.fleet.processes import Process
from tests.support.waiting import until

OURS = {"voicepipe": (sys.executable, "-m", "voicepipe"), "python3": (sys.executable,), "nats-server": (PROGRAM or "",)}
"""Programs of the image."""
LOOK_S = 0.05
READY_S = 120.0


class Pod:
    """A pod of a Deployment. `names`: what is replaced in its files, such as names of Services. `secrets`: the values
    of each Secret."""

    def __init__(
        self,
        name: str,
        address: str,
        objects: Sequence[Object],
        deployment: str,
        secrets: Mapping[str, Mapping[str, str]],
        folder: Path,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self.name, self.address = name, address
        self.spec: Object = named(objects, "Deployment", deployment)["spec"]["template"]["spec"]
        self.ready = self.terminating = self.killed = False
        self.restarts = 0
        """How often the liveness probe would have had it restarted."""
        self.annotations: dict[str, str] = {}
        self._secrets = secrets
        self._folder = folder / name
        self._texts = dict(names or {})
        self._prepare(objects)
        self.main: Object = self.spec["containers"][0]
        command, environment = self._command(self.main, self.main["command"])
        self.process = Process(name, command, self._folder / "log", environment=environment)
        self._probing: asyncio.Task[None] | None = None

    # --- its life

    async def start(self) -> None:
        """Until its container has been started; it is probed from then on. Raises AssertionError: a container that
        begins it fails."""
        for container in self.spec.get("initContainers", ()):
            command, environment = self._command(container, container["command"])
            begun = await asyncio.create_subprocess_exec(
                *command,
                env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **environment},
                stdout=PIPE,
                stderr=STDOUT,
            )
            said, _ = await begun.communicate()
            assert begun.returncode == 0, f"{self.name}, {container['name']}: {said.decode()}"
        self.process.start()
        self._probing = asyncio.create_task(self._probe())

    async def until_ready(self) -> None:
        """Raises TimeoutError, AssertionError: it is not, or has ended instead."""
        await until(lambda: self.ready or not self.process.runs, READY_S)
        assert self.process.runs, f"{self.name} has ended: {self.process.said()[-2000:]}"

    async def delete(self) -> None:
        """End it as `kubectl delete pod` does; returns when it is gone."""
        self.terminating = True  # From here on it is no endpoint of a Service that is ready.
        deadline = time.monotonic() + self.spec["terminationGracePeriodSeconds"]
        if hook := self.main.get("lifecycle", {}).get("preStop"):
            command, environment = self._command(self.main, hook["exec"]["command"])
            stopping = await asyncio.create_subprocess_exec(*command, env={**os.environ, **environment})
            await stopping.wait()
        self.process.signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await until(lambda: not self.process.runs, deadline - time.monotonic())
        self.killed = self.process.runs
        await self.lose()

    async def lose(self) -> None:
        """Its node is lost: SIGKILL, and nobody probes it any more. Idempotent."""
        if self._probing:
            self._probing.cancel()
            with suppress(asyncio.CancelledError):
                await self._probing
        self.ready = False
        self.process.kill()

    # --- its probes

    async def _probe(self) -> None:
        async with httpx.AsyncClient(verify=False, trust_env=False) as client:
            if startup := self.main.get("startupProbe"):
                while not await self._passes(client, startup):  # noqa: ASYNC110
                    await asyncio.sleep(startup["periodSeconds"] / 10)
            liveness = asyncio.create_task(self._liveness(client))
            try:
                probe, failed = self.main["readinessProbe"], 0
                while True:
                    failed = 0 if await self._passes(client, probe) else failed + 1
                    self.ready = failed == 0 or (self.ready and failed < probe.get("failureThreshold", 3))
                    await asyncio.sleep(probe["periodSeconds"] / 4)
            finally:
                liveness.cancel()

    async def _liveness(self, client: httpx.AsyncClient) -> None:
        probe, failed = self.main["livenessProbe"], 0
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        while True:
            failed = 0 if await self._passes(client, probe) else failed + 1
            self.restarts += failed == probe["failureThreshold"]
            await asyncio.sleep(probe["periodSeconds"])

    async def _passes(self, client: httpx.AsyncClient, probe: Object) -> bool:
        get = probe["httpGet"]
        port = next(port["containerPort"] for port in self.main["ports"] if port["name"] == get["port"])
        url = f"{get.get('scheme', 'HTTP').lower()}://{self.address}:{port}{get['path']}"
        try:
            return 200 <= (await client.get(url, timeout=10)).status_code < 400
        except httpx.HTTPError:
            return False

    # --- its files and its command

    def _prepare(self, objects: Sequence[Object]) -> None:
        """Make its volumes. Of a path that two containers have for different volumes nothing is known here."""
        mounts = {mount["mountPath"]: mount["name"] for each in containers(self.spec) for mount in each["volumeMounts"]}
        self._texts |= {path: str(self._folder / volume) for path, volume in mounts.items()}
        for volume in self.spec["volumes"]:
            place = self._folder / volume["name"]
            if source := volume.get("configMap"):
                config_map = named(objects, "ConfigMap", source["name"])
                written({"data": {name: self._here(text) for name, text in config_map["data"].items()}}, place)
            else:
                place.mkdir(parents=True)
                if source := volume.get("secret"):
                    for name, value in self._secrets[source["secretName"]].items():
                        (place / name).write_text(value)

    def _here(self, text: str) -> str:
        """A text in which each path and name is the one of this machine."""
        longest_first = sorted(self._texts, key=len, reverse=True)
        pattern = rf"(?<![\w.-])({'|'.join(map(re.escape, longest_first))})(?![\w-])"
        return re.sub(pattern, lambda found: self._texts[found[1]], text)

    def command_of(self, among: Sequence[Object], name: str) -> tuple[list[str], dict[str, str]]:
        """The command of the container of this name, and its environment."""
        container = next(each for each in among if each["name"] == name)
        return self._command(container, container["command"])

    def _command(self, container: Object, command: Sequence[str]) -> tuple[list[str], dict[str, str]]:
        """A command in a container, and its environment."""
        environment: dict[str, str] = {}
        for source in container.get("envFrom", ()):
            environment |= self._secrets[source["secretRef"]["name"]]
        environment |= {each["name"]: value for each in container.get("env", ()) if (value := self._value(each))}
        for name, value in environment.items():
            command = [word.replace(f"$({name})", value) for word in command]
        program, *rest = map(self._here, command)
        return [*OURS.get(program, (program,)), *rest], environment

    def _value(self, variable: Any) -> str:
        if source := variable.get("valueFrom"):
            if field := source.get("fieldRef"):
                return {"metadata.name": self.name, "status.hostIP": self.address}[field["fieldPath"]]
            return self._secrets.get(source["secretKeyRef"]["name"], {}).get(source["secretKeyRef"]["key"], "")
        return self._here(variable["value"])


class Proxies:
    """A Service as the nodes' proxies know it: its endpoints of `lag_s` ago."""

    def __init__(self, lag_s: float) -> None:
        self.pods: list[Pod] = []
        self._lag_s = lag_s
        self._seen: deque[tuple[float, list[Pod]]] = deque([(0.0, [])])

    async def run(self) -> None:
        """Follow the pods, until cancelled."""
        while True:
            now = time.monotonic()
            self._seen.append((now, [pod for pod in self.pods if pod.ready and not pod.terminating]))
            while len(self._seen) > 1 and self._seen[1][0] <= now - self._lag_s:
                self._seen.popleft()
            await asyncio.sleep(LOOK_S)

    @property
    def endpoints(self) -> list[Pod]:
        """The pods to which a new connection may go."""
        return self._seen[0][1]


def first_to_end(pods: Sequence[Pod], cost: str) -> Pod:
    """The pod that a ReplicaSet ends when it needs fewer: those that are not ready first, then by the annotation `cost`
    (its page, "Scaling a ReplicaSet"; what comes after that does not matter here)."""
    return min(pods, key=lambda pod: (pod.ready, int(pod.annotations.get(cost, 0))))
