"""How a region with a directory and a NATS server behaves on Kubernetes, and two of them: a lost node, a lost region, a
drained PoP, a full one, a lost NATS server. All are real processes, started, probed and ended as kubelets do, by what
the rendered objects say, and with the secrets that the page's commands make."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.deploy.cluster import PAUSE_S, Cluster, DirectorySide, begun, calls, cluster, shortened
from tests.deploy.kubelet import first_to_end
from tests.deploy.page import TWO, needs_openssl, secrets
from tests.deploy.rendered import needs_kubectl
from tests.deploy.test_deletion_cost import deletion_cost
from tests.deploy.test_kubernetes_life import write_costs
from tests.directory.nats_server import needs_nats
from tests.fleet.network import Host, Loopback
from tests.support.waiting import until

TWO_REGIONS = {"eu-central", "us-east"}
pytestmark = [needs_kubectl, needs_openssl, needs_nats, pytest.mark.e2e]


@asynccontextmanager
async def region(
    name: str, folder: Path, *, slots: int = 8, pops: int = 2, other: Cluster | None = None
) -> AsyncIterator[tuple[Cluster, DirectorySide]]:
    """A region, with its NATS server, a directory, and PoPs that this knows. `other`: the region that it joins, and
    whose secrets it has; without one it makes its own."""
    async with cluster(shortened(f"overlays/two-regions/{name}", slots), folder / name) as it:
        if other:
            it.names, it.secrets = other.names, other.secrets
        else:
            it.names = {
                f"nats.voicepipe-{each}.svc": Loopback(folder).host("nats", each).address for each in ("eu", "us")
            }
            replaced = {f"DNS:{service}": f"IP:{address}" for service, address in it.names.items()}
            it.secrets = secrets(TWO, folder / "secrets", replaced)
        await it.pod("nats", Host("nats", name, it.names[f"nats.voicepipe-{name}.svc"]))
        _, started = await asyncio.gather(it.pops(pops), it.pod("voicepipe-directory"))
        directory = DirectorySide(started, it.secrets["voicepipe-directory"])
        ready = {pod.name for pod in it.proxies.pods}
        await directory.knows(lambda rows: {row["pop"] for row in rows if row["status"] == "ok"} >= ready)
        yield it, directory


async def test_callers_of_a_lost_node_get_another_pop_and_a_drained_pop_refuses_none(tmp_path: Path) -> None:
    async with region("eu", tmp_path) as (it, directory):
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


async def test_behind_a_directory_a_full_pop_is_ready_and_does_not_end_before_an_empty_one(tmp_path: Path) -> None:
    async with region("eu", tmp_path, slots=1) as (it, directory):
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


async def test_a_directory_that_loses_nats_stays_ready_and_places_calls(tmp_path: Path) -> None:
    async with region("eu", tmp_path) as (it, directory):
        await it.pods[0].lose()
        await asyncio.sleep(4)
        held: list[asyncio.Task[str]] = []
        caller = await begun(directory.caller(), held)
        assert directory.pod.ready and directory.pod.restarts == 0
        caller.hang_up.set()
        assert await held[0] == "hung up"


async def test_a_directory_that_is_ended_lets_the_calls_end_that_it_relays(tmp_path: Path) -> None:
    async with region("eu", tmp_path, pops=1) as (_, directory):
        held: list[asyncio.Task[str]] = []
        caller = await begun(directory.caller(), held)
        ending = asyncio.create_task(directory.pod.delete())
        await until(lambda: not directory.pod.ready)
        assert (await directory.caller().hold(1)).startswith("refused") and not held[0].done()
        caller.hang_up.set()
        await ending
        assert await held[0] == "hung up" and (directory.pod.process.status, directory.pod.killed) == (0, False)


async def test_two_regions_hear_of_each_other_and_callers_of_a_lost_one_go_to_the_other(tmp_path: Path) -> None:
    async with (
        region("eu", tmp_path, pops=1) as (here, directory),
        region("us", tmp_path, pops=1, other=here) as (there, _),
    ):
        await directory.knows(lambda rows: {row["region"] for row in rows if row["status"] == "ok"} == TWO_REGIONS)
        held: list[asyncio.Task[str]] = []
        await begun(directory.caller(), held)
        assert (await calls(here.proxies.pods[0]), await calls(there.proxies.pods[0])) == (1, 0), "the nearer one"
        await here.proxies.pods[0].lose()
        async with asyncio.timeout(60):
            assert await held[0] == "cut"
        again = await begun(directory.caller(), held)
        assert await calls(there.proxies.pods[0]) == 1
        again.hang_up.set()
        assert await held[1] == "hung up"
