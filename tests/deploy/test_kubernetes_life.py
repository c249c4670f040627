"""How PoPs behave on Kubernetes, with real PoPs: readiness, rolling update, the grace period, scale-in. They are
started, probed and ended as kubelets do, by what the rendered objects say."""

import asyncio
import re
import time
from pathlib import Path

import httpx
import pytest

from tests.deploy.cluster import LAG_S, PAUSE_S, Caller, Cluster, begun, calls, cluster, shortened, url
from tests.deploy.kubelet import Pod, Proxies, first_to_end
from tests.deploy.page import ONE, needs_openssl, secrets
from tests.deploy.rendered import named, needs_kubectl, rendered
from tests.deploy.test_deletion_cost import FakeApi, deletion_cost, pod
from tests.support.waiting import until

pytestmark = [needs_kubectl, needs_openssl, pytest.mark.e2e]


@pytest.fixture
def its_secrets(tmp_path: Path) -> dict[str, dict[str, str]]:
    """As the page's commands make them."""
    return secrets(ONE, tmp_path / "secrets")


def key_of(cluster: Cluster) -> str:
    """Of the tenant."""
    return cluster.secrets["voicepipe-pop"]["HARBOUR_HOUSE_KEY"]


async def arriving(proxies: Proxies, key: str, over: asyncio.Event) -> list[str]:
    """Callers by the Service, one after another and each for a while; how their calls ended."""
    callers: list[asyncio.Task[str]] = []
    while not over.is_set():
        endpoints = proxies.endpoints
        if endpoints:
            one = endpoints[len(callers) % len(endpoints)]
            callers.append(asyncio.create_task(Caller(url(one), key).hold(0.8)))
        await asyncio.sleep(0.15)
    return await asyncio.gather(*callers)


async def test_a_rolling_update_cuts_no_call_and_refuses_none(
    tmp_path: Path, its_secrets: dict[str, dict[str, str]]
) -> None:
    async with cluster(shortened("overlays/cpu", slots=60), tmp_path, its_secrets) as it:
        old = await it.pops(2)
        await until(lambda: len(it.proxies.endpoints) == 2)
        held: list[asyncio.Task[str]] = []
        long = [await begun(Caller(url(each), key_of(it)), held) for each in old for _ in range(2)]
        over = asyncio.Event()
        arrived = asyncio.create_task(arriving(it.proxies, key_of(it), over))
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
    tmp_path: Path, its_secrets: dict[str, dict[str, str]]
) -> None:
    """As a PoP drains from SIGTERM on, and proxies do not know it yet: why preStop does not order it to drain."""
    objects = shortened("overlays/cpu")
    named(objects, "Deployment", "voicepipe-pop")["spec"]["template"]["spec"]["containers"][0].pop("lifecycle")
    async with cluster(objects, tmp_path, its_secrets) as it:
        one = await it.pop()
        held: list[asyncio.Task[str]] = []
        caller = await begun(Caller(url(one), key_of(it)), held)
        ending = asyncio.create_task(one.delete())
        await until(lambda: not one.ready)  # the probe goes on
        assert await Caller(url(one), key_of(it)).hold(1) == "refused 503"
        caller.hang_up.set()
        await ending
        assert await held[0] == "hung up" and one.process.status == 0


async def test_a_call_that_outlasts_the_grace_period_is_cut_then_and_not_before(
    tmp_path: Path, its_secrets: dict[str, dict[str, str]]
) -> None:
    objects = shortened("overlays/cpu")
    named(objects, "Deployment", "voicepipe-pop")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 7
    async with cluster(objects, tmp_path, its_secrets) as it:
        one = await it.pop()
        held: list[asyncio.Task[str]] = []
        await begun(Caller(url(one), key_of(it)), held)
        deleted = time.monotonic()
        ending = asyncio.create_task(one.delete())
        assert await held[0] == "cut" and time.monotonic() - deleted >= 7
        await ending
        assert one.killed


async def slots_used(cluster: Cluster, pod: Pod) -> int:
    """What Prometheus reads of it, as the ServiceMonitor says, for autoscalers."""
    [rule] = named(rendered("autoscaling/prometheus"), "PrometheusRule", "voicepipe-autoscaling")["spec"]["groups"]
    [endpoint] = named(rendered("overlays/cpu"), "ServiceMonitor", "voicepipe-pop")["spec"]["endpoints"]
    secret = endpoint["authorization"]["credentials"]
    async with httpx.AsyncClient(trust_env=False) as client:
        key = cluster.secrets[secret["name"]][secret["key"]]
        answer = await client.get(
            f"http://{pod.address}:8080/metrics", headers={"Authorization": f"Bearer {key}"}, timeout=30
        )
    names = set(re.findall(r"voicepipe_\w+", rule["rules"][0]["expr"]))
    found = {name: re.findall(rf"^{name}\{{(.*)\}} (\S+)$", answer.text, re.MULTILINE) for name in names}
    assert all(found.values()) and any('status="draining"' in labels for labels, _ in found["voicepipe_status"])
    return int(float(found["voicepipe_slots_used"][0][1]))


def write_costs(pods: list[Pod]) -> None:
    """A round of the script that sets deletion costs."""
    api = FakeApi(*(pod(each.name, each.address) for each in pods))
    with httpx.Client(trust_env=False, timeout=30) as client:
        deletion_cost.write_costs(api.client, client, "voicepipe", "app=pop")
    for name, cost in api.costs().items():
        next(each for each in pods if each.name == name).annotations[deletion_cost.COST] = cost


async def test_scale_in_ends_the_emptiest_pop_and_cuts_no_call(
    tmp_path: Path, its_secrets: dict[str, dict[str, str]]
) -> None:
    async with cluster(shortened("overlays/cpu"), tmp_path, its_secrets) as it:
        pops = await it.pops(3)
        held: list[asyncio.Task[str]] = []
        callers = [await begun(Caller(url(pops[number]), key_of(it)), held) for number in (0, 0, 2)]
        assert [await slots_used(it, each) for each in pops] == [2, 0, 1]
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
