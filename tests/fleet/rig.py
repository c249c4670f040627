"""A fleet of processes: PoPs, a directory, a NATS server and callers in each region."""

import asyncio
import os
import re
import signal
import sys
import time
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.directory.nats_server import PROGRAM
from tests.fleet import manifests
from tests.fleet.history import Happened, History, Pop, Views
from tests.fleet.network import BUS_PORT, PORT, ROUTE_PORT, SIP_PORT, Host, Network
from tests.fleet.orders import Orders
from tests.fleet.polling import until
from tests.fleet.processes import Process, wait

READY_S = 120.0
WHOLE_S = 120.0
ASKED_S = 10.0
RELOADED = re.compile("the files were read again|Reloaded server configuration")
ANSWERS = "answers at (https?://[^\\s;,]+)"
TAKES = ("ok", "late", "full")
"""States of a PoP that are told apart by the moment's load."""


class Plan(NamedTuple):
    """What a fleet has."""

    pops: dict[str, str]
    """Names, and the region of each."""
    slots: int
    drain_s: float = 3660.0


class Rig:
    """`network` is not started yet. Times are monotonic seconds."""

    def __init__(self, plan: Plan, folder: Path, network: Network) -> None:
        self.plan = plan
        self.network = network
        self.happened: list[Happened] = []
        self.folder = folder
        self.regions = sorted(set(plan.pops.values()), key=list(manifests.PLACES).index)
        self.pops = {name: network.host(name, region) for name, region in plan.pops.items()}
        self.directories = {f"dir-{region}": network.host(f"dir-{region}", region) for region in self.regions}
        self.nats = {f"nats-{region}": network.host(f"nats-{region}", region) for region in self.regions}
        self.key = write_key(folder, manifests.DIRECTORY)
        self._engines = manifests.write_engines(folder)
        self.users = {manifests.DIRECTORY: manifests.DIRECTORY} | {name: name for name in plan.pops}
        """Of the bus, and whose each is."""
        self._settings: dict[str, manifests.PopSettings | manifests.DirectorySettings] = {}
        self.processes: dict[str, Process] = {}
        self._begun: dict[str, float] = {}
        self._paused: set[str] = set()
        self._cut: set[str] = set()
        for name, host in self.nats.items():
            self.processes[name] = self._nats(host)
        self.telnyx = Orders(network.host("telnyx", self.regions[0]), folder)
        """Telnyx, and whoever calls by it, of all regions: PoPs know one address of its API."""
        for name, host in self.directories.items():
            self.processes[name] = self._directory(host)
        for name, host in self.pops.items():
            self.processes[name] = self._pop(host)
        self.callers = {region: Orders(network.host(f"callers-{region}", region), folder) for region in self.regions}

    def start(self) -> None:
        """Until every process serves."""
        self.network.start()
        for name in self.processes:
            self.begin(name)
        for callers in self._callers():
            callers.process.start()
        everybody = [*self.processes.values(), *(callers.process for callers in self._callers())]
        wait(lambda: all(process.serves for process in everybody), "all processes serve", READY_S)

    def close(self) -> None:
        """Idempotent."""
        for callers in self._callers():
            callers.process.kill()
        for process in self.processes.values():
            process.kill()
        self.network.close()

    def _callers(self) -> list[Orders]:
        return [*self.callers.values(), self.telnyx]

    # --- what is done to it

    def begin(self, name: str, **environment: str) -> None:
        """Start a process; others go on meanwhile. `environment`: more of it, for this run."""
        process = self.processes[name]
        kept = dict(process.environment)
        process.environment.update(environment)
        self._note("started", name)
        self._begun[name] = time.monotonic()
        process.start()
        process.environment = kept

    def kill(self, name: str) -> None:
        """By SIGKILL."""
        self._note("killed", name)
        self.processes[name].kill()

    def pause(self, name: str) -> None:
        self._note("paused", name)
        self._paused.add(name)
        self.processes[name].signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        self._note("resumed", name)
        self._paused.discard(name)
        self.processes[name].signal(signal.SIGCONT)

    def terminate(self, pop: str) -> None:
        """By SIGTERM: it drains."""
        self._note("drained", pop)
        self.processes[pop].signal(signal.SIGTERM)

    async def order_drain(self, pop: str, directory: str) -> None:
        """By the operator's order to a directory."""
        headers = {"Authorization": f"Bearer {manifests.OPERATOR}"}
        async with httpx.AsyncClient(timeout=ASKED_S, trust_env=False) as client:
            self._note("drained", pop)
            answer = await client.post(f"{self.url(directory)}/v1/pops/{pop}/drain", headers=headers)
        answer.raise_for_status()

    async def command(self, *command: str, directory: str) -> str:
        """What `voicepipe` with this command says to the operator, who asks this directory."""
        asking = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "voicepipe", *command, "--directory", self.url(directory),
            env={**os.environ, "VOICEPIPE_OPERATOR_KEY": manifests.OPERATOR}, stdout=PIPE, stderr=STDOUT,
        )  # fmt: skip
        said, _ = await asking.communicate()
        assert asking.returncode == 0, (command, said.decode())
        return said.decode()

    async def drain(self, pop: str, directory: str) -> None:
        """By the operator's command. The PoP takes no calls any more when it has been carried out."""
        await self.command("drain", pop, directory=directory)
        self._note("drained", pop)

    async def stopped(self, name: str, seconds: float) -> None:
        """As the service manager stops it: it has ended by itself. Raises TimeoutError."""
        process = self.processes[name]
        process.signal(signal.SIGUSR2 if name in self.nats else signal.SIGTERM)
        await until(lambda: not process.runs, seconds)

    def configure(self, name: str, **changes: Any) -> None:
        """Write the file of a PoP or a directory anew, with other settings."""
        self._settings[name] = self._settings[name]._replace(**changes)
        self._write(name)

    async def reload(self, name: str, seconds: float) -> None:
        """As by `systemctl reload`: its files are read again. NATS: with the users as they are now. Raises
        TimeoutError."""
        if name in self.nats:
            self._write_nats(self.nats[name])
        process = self.processes[name]
        before = len(RELOADED.findall(process.said()))
        process.signal(signal.SIGHUP)
        await until(lambda: len(RELOADED.findall(process.said())) > before, seconds)

    def cut(self, region: str) -> None:
        self._note("cut", region)
        self._cut.add(region)
        self.network.cut(region)

    def heal(self, region: str) -> None:
        self._note("healed", region)
        self._cut.discard(region)
        self.network.heal(region)

    async def whole(self) -> None:
        """Mend what is broken, and wait until all directories know that all PoPs take calls and have none."""
        for region in list(self._cut):
            self.heal(region)
        for name in list(self._paused):
            self.resume(name)
        for name, process in self.processes.items():
            if not process.runs:
                self.begin(name)
        await until(lambda: all(process.serves for process in self.processes.values()), READY_S)
        for pop in self.pops:
            await self.heard(pop, self._begun[pop], WHOLE_S)
        await until(self._is_idle, WHOLE_S, 0.1)

    async def whole_bus(self, seconds: float) -> None:
        """All NATS servers run, and those that did not begin at the same time."""
        for name in self.nats:
            if not self.processes[name].runs:
                self.begin(name)
        await until(lambda: all(self.processes[name].serves for name in self.nats), seconds)

    # --- what it knows

    def url(self, name: str) -> str:
        """Where a directory or a PoP answers."""
        return f"http://{(self.directories.get(name) or self.pops[name]).address}:{PORT}"

    async def rows(self, directory: str, which: str = "pops") -> list[dict[str, Any]]:
        """Its GET /v1/pops; `which`: "lost" for the PoPs that have fallen silent. Raises httpx.HTTPError."""
        return list((await self._told(directory, "/v1/pops"))[which])

    async def push(self, directory: str, files: dict[str, str]) -> httpx.Response:
        """POST /v1/editions there. Raises httpx.HTTPError."""
        headers = {"Authorization": f"Bearer {manifests.OPERATOR}"}
        async with httpx.AsyncClient(timeout=ASKED_S, trust_env=False) as client:
            return await client.post(f"{self.url(directory)}/v1/editions", headers=headers, json={"files": files})

    async def browser_key(self, directory: str) -> str:
        """An `ek_` key, as a page has one. Raises httpx.HTTPError."""
        headers = {"Authorization": f"Bearer {manifests.ACME}"}
        async with httpx.AsyncClient(timeout=ASKED_S, trust_env=False) as client:
            url = f"{self.url(directory)}/v1/realtime/client_secrets"
            return str((await client.post(url, headers=headers, json={})).raise_for_status().json()["value"])

    async def learned(self, directory: str) -> dict[tuple[str, str], float]:
        """Round trips in ms that it has learned, by network and PoP. Raises httpx.HTTPError."""
        rows = (await self._told(directory, "/v1/round-trips"))["round_trips"]
        return {(row["network"], row["pop"]): row["ms"] for row in rows}

    async def _told(self, directory: str, path: str) -> dict[str, Any]:
        """What it tells its operator. Raises httpx.HTTPError."""
        headers = {"Authorization": f"Bearer {manifests.OPERATOR}"}
        async with httpx.AsyncClient(timeout=ASKED_S, trust_env=False) as client:
            answer = await client.get(f"{self.url(directory)}{path}", headers=headers)
            return dict(answer.raise_for_status().json())

    async def views(self, *, idle: bool = False) -> Views:
        """What the directories that run know now. `idle`: a PoP that has calls is told as one that has."""
        running = [name for name in self.directories if self.processes[name].runs]
        views = await asyncio.gather(*(self._view(name, idle) for name in running))
        should = {name: "takes" for name in self.pops if self.processes[name].runs}
        return Views(time.monotonic(), dict(zip(running, views, strict=True)), should)

    async def _view(self, directory: str, idle: bool) -> dict[str, str]:
        try:
            rows = await self.rows(directory)
        except httpx.HTTPError as error:
            return {"": f"{directory} does not answer: {error!r}"}
        busy = {row["pop"]: " with calls" if idle and row["calls"] + row["coming"] else "" for row in rows}
        return {row["pop"]: f"{'takes' if row['status'] in TAKES else row['status']}{busy[row['pop']]}" for row in rows}

    async def heard(self, pop: str, since: float, seconds: float) -> float:
        """When all directories had heard from a PoP since then that it takes calls. Raises TimeoutError."""
        for directory in self.directories:
            await until(partial(self._heard, directory, pop, since), seconds)
        return time.monotonic()

    async def _is_idle(self) -> bool:
        everybody = dict.fromkeys(self.pops, "takes")
        return all(view == everybody for view in (await self.views(idle=True)).of.values())

    async def _heard(self, directory: str, pop: str, since: float) -> bool:
        if not self.processes[directory].runs:
            return True
        asked = time.monotonic()
        with suppress(httpx.HTTPError):
            rows = await self.rows(directory)
            return any(row["pop"] == pop and row["status"] in TAKES and asked - row["age_s"] > since for row in rows)
        return False

    def history(self) -> History:
        """That of a scenario which begins now."""
        self.happened.clear()
        pops = {
            name: Pop(f"ws://{host.address}:{PORT}/v1/realtime", host.region, host.region, self.plan.slots,
                      self.plan.drain_s, f"{host.address}:{SIP_PORT}")
            for name, host in self.pops.items()
        }  # fmt: skip
        return History(pops, {name: host.region for name, host in self.directories.items()}, happened=self.happened)

    def bus(self, nats: str) -> str:
        """The address of a NATS server."""
        return f"nats://{self.nats[nats].address}:{BUS_PORT}"

    # --- its parts

    def _note(self, what: str, whom: str) -> None:
        self.happened.append(Happened(time.monotonic(), what, whom))

    def _servers(self, region: str) -> list[str]:
        """All NATS servers as a region reaches them, its own first."""
        nearest = sorted(self.nats.values(), key=lambda host: host.region != region)
        return [f"nats://{self.network.way(region, host, BUS_PORT)}" for host in nearest]

    def _nats(self, host: Host) -> Process:
        assert PROGRAM, "needs nats-server"
        command = (PROGRAM, "-c", str(self._write_nats(host)))
        return Process(host.name, command, self._log(host), "Server is ready", namespace=host.namespace)

    def _write_nats(self, host: Host) -> Path:
        """One of two servers dials the other: where both do, each may drop the other's connection as a duplicate, again
        and again, and a healed region stays unknown for up to 13 seconds."""
        named_before = takewhile(lambda other: other != host, self.nats.values())
        routes = [f"nats-route://{self.network.way(host.region, other, ROUTE_PORT)}" for other in named_before]
        return manifests.write_nats(self.folder, host, routes, self.users)

    def _directory(self, host: Host) -> Process:
        self._settings[host.name] = manifests.DirectorySettings()
        command = (sys.executable, "-m", "voicepipe", "directory", "--config", str(self._write(host.name)))
        return Process(host.name, command, self._log(host), ANSWERS, manifests.SECRETS, host.namespace)

    def _pop(self, host: Host) -> Process:
        self._settings[host.name] = manifests.PopSettings()
        files = ("--config", str(self._engines), "--pop", str(self._write(host.name)))
        command = (sys.executable, "-m", "tests.fleet.skewed", "pop", *files)
        return Process(host.name, command, self._log(host), ANSWERS, manifests.PROVIDERS, host.namespace)

    def _write(self, name: str) -> Path:
        """The file of a PoP or a directory."""
        host = self.directories.get(name) or self.pops[name]
        others = manifests.Hosts(self._servers(host.region), self.telnyx.host)
        settings = self._settings[name]
        if isinstance(settings, manifests.DirectorySettings):
            return manifests.write_directory(self.folder, host, others, settings)
        return manifests.write_pop(self.folder, host, others, self.plan.slots, self.plan.drain_s, settings)

    def _log(self, host: Host) -> Path:
        return self.folder / f"{host.name}.log"


def write_key(folder: Path, name: str) -> Ed25519PrivateKey:
    """A new key for directories, which is written there."""
    key = Ed25519PrivateKey.generate()
    (folder / f"{name}.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))  # fmt: skip
    (folder / f"{name}.pub.pem").write_bytes(key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo))  # fmt: skip
    return key


@contextmanager
def running(plan: Plan, folder: Path, network: Network) -> Iterator[Rig]:
    """A fleet whose processes serve. They are gone afterwards, whatever happens."""
    rig = Rig(plan, folder, network)
    try:
        rig.start()
        yield rig
    finally:
        rig.close()
