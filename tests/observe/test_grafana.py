"""Grafana's dashboards: their JSON is what Grafana reads, they ask for metrics that there are, and each query of each
panel has an answer from a real Prometheus. Grafana itself does not run here."""

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from itertools import combinations, count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import websockets
from prometheus_client import REGISTRY, Counter, Gauge, Histogram

from latency_probes.caller import Caller
from latency_probes.conversation import converse
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from latency_probes.sip import SipCaller
from pops.dashboards.grafana import build
from pops.dashboards.grafana.model import Needs, Panel
from tests.directory.fleets import FRANKFURT, LONDON, OPERATOR, fleet, public_key, served, settings
from tests.directory.reports import report
from tests.observe.otlp_receiver import receiver
from tests.observe.prometheus import Prometheus, installed, scraping
from tests.observe.test_alerts import told
from tests.probe.series import series
from tests.support.fake_nvml import FakeDriver, FakeGpu
from tests.support.ports import free_port
from tests.support.spoken import spoken
from voicepipe.config import Config, HttpConfig, PopConfig
from voicepipe.config.probe_config import ProbeConfig
from voicepipe.directory import subjects
from voicepipe.directory.bus import BusMessage, MemoryBus
from voicepipe.ingress import server
from voicepipe.observe.cost import CostMeter
from voicepipe.probe.probe_metrics import ProbeMetrics
from voicepipe.probe.probe_service import ProbeService
from voicepipe.probe.run import app
from voicepipe.probe.verdict import ProbeVerdict

VLLM: dict[str, type[Counter] | type[Gauge] | type[Histogram]] = {
    "vllm:num_requests_running": Gauge,
    "vllm:num_requests_waiting": Gauge,
    "vllm:kv_cache_usage_perc": Gauge,
    "vllm:prefix_cache_queries": Counter,
    "vllm:prefix_cache_hits": Counter,
    "vllm:num_preemptions": Counter,
    "vllm:prompt_tokens": Counter,
    "vllm:generation_tokens": Counter,
    "vllm:time_to_first_token_seconds": Histogram,
}
"""As vLLM 0.32 registers them (`v1/metrics/loggers.py`)."""
SIGNS: dict[Needs, str] = {
    "price": "_cost_total",
    "records": "voicepipe_(records|deliveries)_",
    "vllm": "vllm:",
    "gpu": "voicepipe_gpu_",
    "probe": "voicepipe_probe_",
}
"""Of metrics that not every PoP has."""
BUILT_IN = {"__rate_interval", "__range", "__url_time_range", "__value", "__all"}
"""Variables that every dashboard has."""
PANELS = [
    (dashboard, panel) for dashboard in build.DASHBOARDS.values() for row in dashboard.rows for panel in row.panels
]
QUERIES = [(dashboard, panel, query) for dashboard, panel in PANELS for query in panel.queries.values()]


# What Grafana reads.


def dashboards() -> list[Any]:
    return [json.loads(build.file(name).read_text()) for name in build.DASHBOARDS]


@pytest.mark.parametrize("name", build.DASHBOARDS)
def test_the_json_is_what_the_tables_say(name: str) -> None:
    assert build.file(name).read_text() == build.written(name), "python -m pops.dashboards.grafana.build"


@pytest.mark.filterwarnings("ignore:Prefer using dashboardv2")
def test_grafanas_own_library_knows_every_field_and_every_unit() -> None:
    """It drops what it does not know."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models import units
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    for dashboard in dashboards():
        read = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
        assert not [*lost(dashboard, read)]
        assert dashboard["schemaVersion"] == Dashboard().schema_version
    known = {unit for unit in vars(units).values() if isinstance(unit, str)}
    assert {panel.unit for _, panel in PANELS} <= known


def lost(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Where something of ours is not in theirs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            yield from lost(value, theirs.get(key), f"{path}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from lost(one, other, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: {ours} is {theirs}"


def test_panels_have_numbers_and_places_of_their_own() -> None:
    for dashboard in dashboards():
        panels = dashboard["panels"]
        assert len({panel["id"] for panel in panels}) == len(panels)
        places = [panel["gridPos"] for panel in panels]
        assert all(place["x"] >= 0 and place["x"] + place["w"] <= 24 for place in places)
        for one, other in combinations(places, 2):
            apart = any(
                first[at] + first[size] <= second[at]
                for first, second in ((one, other), (other, one))
                for at, size in (("x", "w"), ("y", "h"))
            )
            assert apart, f"{dashboard['uid']}: {one} and {other}"
    assert len({dashboard["uid"] for dashboard in dashboards()}) == len(build.DASHBOARDS)


def test_the_prometheus_is_the_one_that_the_user_chooses() -> None:
    for name in build.DASHBOARDS:
        assert set(re.findall(r'"uid": "(.*?)"', build.written(name))) == {"${datasource}", f"voicepipe-{name}"}


def test_variables_that_are_used_are_there() -> None:
    for name, dashboard in build.DASHBOARDS.items():
        known = {variable["name"] for variable in dashboard.variables} | BUILT_IN
        used = set(re.findall(r"\$\{?(\w+)", build.written(name)))
        assert used <= known, f"{name}: {used - known}"
        assert known - BUILT_IN <= used, f"{name}: {known - used}"


def test_links_to_dashboards_lead_to_ours() -> None:
    linked = {uid for name in build.DASHBOARDS for uid in re.findall(r'"url": "/d/([\w-]+)', build.written(name))}
    assert linked == {"voicepipe-pop"}


def test_they_ask_for_metrics_that_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    priced = CostMeter(PopConfig(slots=60, price_per_hour=1.0), time.monotonic).read(("fra1", "eu"))
    known = told(monkeypatch) | {f"{family.name}_total" for family in priced}
    of_vllm = {
        name + suffix
        for name, kind in VLLM.items()
        for suffix in {Gauge: ("",), Counter: ("_total",), Histogram: ("_bucket", "_sum", "_count")}[kind]
    }
    texts = [query for _, _, query in QUERIES] + [
        str(variable["query"]) for dashboard in build.DASHBOARDS.values() for variable in dashboard.variables
    ]
    asked = {name for text in texts for name in re.findall(r"\b(?:voicepipe_|vllm:|process_)\w+", text)}
    assert asked <= known | of_vllm, asked - known - of_vllm


def test_panels_say_what_a_pop_must_have_for_them() -> None:
    for _, panel, query in QUERIES:
        assert panel.needs == next((needs for needs, sign in SIGNS.items() if re.search(sign, query)), ""), query


# What a Prometheus answers.


def filled_in(query: str, pop: str) -> str:
    """As Grafana asks. The window is longer than the test: on a slow machine a call must not be too old."""
    values = {"$window": "1h", "$__range": "1h", "$__rate_interval": "5m",
              "$pop": pop, "$region": ".*", "$ingress": ".*"}  # fmt: skip
    for name, value in values.items():
        query = query.replace(name, value)
    assert "$" not in query
    return query


def offered(prometheus: Prometheus, variable: Any) -> list[str]:
    """What the user may choose."""
    found = re.fullmatch(r"label_values\((.*),(\w+)\)", variable["query"]["query"])
    assert found
    return list(prometheus.get(f"label/{found[2]}/values", **{"match[]": filled_in(found[1], "fra")}))


def answered(prometheus: Prometheus, panel: Panel, asked: str) -> bool:
    """There is a number in the answer, now or, for a panel with a course, in the last minutes."""
    now = time.time()
    if panel.at_once:
        result = prometheus.get("query", query=asked)["result"]
        numbers = [series["value"][1] for series in result]
    else:
        result = prometheus.get("query_range", query=asked, start=now - 600, end=now, step=2)["result"]
        numbers = [value for series in result for _, value in series["values"]]
    return any(math.isfinite(float(number)) for number in numbers)


@contextmanager
def standing_in_for_vllm() -> Iterator[Callable[[], None]]:
    """Its metrics, where it registers them; what is given has them count."""
    labels = {"model_name": "stand-in", "engine": "0"}
    metrics = [kind(name, "A stand-in.", labels) for name, kind in VLLM.items()]
    series = [metric.labels(**labels) for metric in metrics]

    def work() -> None:
        for each in series:
            each.observe(0.04) if isinstance(each, Histogram) else each.inc()

    try:
        yield work
    finally:
        for metric in metrics:
            REGISTRY.unregister(metric)


def config(name: str, public: str, place: tuple[float, float], folder: Path, collector: str, **more: Any) -> Config:
    """Of a PoP that takes calls however slow this machine is."""
    return settings(
        name, public, place, **more,
        pop={"price_per_hour": 2.5, "budget_ms": 600_000, "loop_lag_ms": 60_000},
        engines={"llm": "frontdesk", "tts": "espeak"},
        scripted={"hears": ["what are your opening hours"]},
        records={"folder": str(folder / name)},
        traces={"endpoint": collector},
    )  # fmt: skip


@asynccontextmanager
async def probing() -> AsyncIterator[str]:
    """A stand-in for a probe of the first PoP, which has called it once. Its address."""
    metrics, http = ProbeMetrics(ProbeConfig()), HttpConfig(port=0)
    metrics.called(series(), ProbeVerdict("fra", None, "", True, "", 0.2, 0.0, True, 0.03), 0)
    application = app(cast(ProbeService, SimpleNamespace(status="ok")), metrics, "")
    listener = server.bind(http)
    serving = asyncio.create_task(server.serve(application, listener, http, 10, 4096, asyncio.Event()))
    yield f"127.0.0.1:{listener.getsockname()[1]}"
    serving.cancel()


@asynccontextmanager
async def everything(folder: Path) -> AsyncIterator[tuple[Prometheus, str, str, int]]:
    """A directory, two PoPs and a third that has fallen silent, a probe, and a Prometheus that scrapes them. Also
    given: the addresses of the directory and of the first PoP, and that PoP's SIP port."""
    public, phone, bus = await asyncio.to_thread(public_key, folder), free_port(), MemoryBus()
    async with AsyncExitStack() as stack:
        collector = stack.enter_context(receiver())
        fra = config("fra", public, FRANKFURT, folder, collector.url, sip={"port": phone})
        lhr = config("lhr", public, LONDON, folder, collector.url)
        directory, _ = await stack.enter_async_context(fleet(fra, lhr, bus=bus))
        at = await stack.enter_async_context(served(directory, bus))
        gone = report(epoch=int(time.time() * 1000))
        directory.take(BusMessage(subjects.of_pop(subjects.REPORTS, "nrt"), msgspec.json.encode(gone)))
        targets = {
            "voicepipe": [pop.fleet.url.removeprefix("http://") for pop in (fra, lhr)],
            "directory": [at.url.removeprefix("http://")],
            "voicepipe-probe": [await stack.enter_async_context(probing())],
        }
        (folder / "prometheus").mkdir()
        scraped = scraping(folder / "prometheus", "1s", targets, {"directory": OPERATOR})
        yield stack.enter_context(scraped), at.url, fra.fleet.url, phone


async def load(prometheus: Prometheus, directory: str, pop: str, phone: int) -> None:
    """Calls with a spoken question: one, and once Prometheus knows of it, which is before all series have grown, others
    by the directory and by telephone; then one call more than there are places."""
    question = CallPlan(0, "quiet", (Turn("e2e", spoken("hours")[0]),))

    async def call(*callers: Caller) -> None:
        for record in await asyncio.gather(*(converse(caller, question, seed=1) for caller in callers)):
            assert not record.failure, record.failure

    by_directory = (RealtimeCaller(directory, "quiet", seed, key="k-acme") for seed in count())
    await call(next(by_directory))
    await holds(lambda: sum(prometheus.asked("voicepipe_calls_total").values()) == 1)
    await call(next(by_directory), next(by_directory), SipCaller(pop, "quiet", 1, phone=f"127.0.0.1:{phone}"))
    async with AsyncExitStack() as held:
        with pytest.raises(websockets.InvalidStatus):
            for _ in range(5):
                await held.enter_async_context(websockets.connect(f"ws{pop.removeprefix('http')}/v1/realtime"))


@pytest.mark.e2e
@installed
async def test_each_query_of_each_panel_has_an_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With stand-ins for what this machine lacks: a driver for two GPUs, and a registry with vLLM's metrics."""
    FakeDriver([FakeGpu(busy=40), FakeGpu(uuid="GPU-1")]).install(monkeypatch)
    with standing_in_for_vllm() as work:
        async with everything(tmp_path) as (prometheus, directory, pop, phone):
            await holds(lambda: sum(prometheus.asked("up").values()) == 4)
            await load(prometheus, directory, pop, phone)
            work()
            unanswered = [
                (panel, filled_in(query, "fra" if dashboard is build.POP else ".*"))
                for dashboard, panel, query in QUERIES
            ]
            traced = [query for panel, query in unanswered if panel.exemplars and "latency" in query]

            def all_are_answered() -> bool:
                unanswered[:] = [each for each in unanswered if not answered(prometheus, *each)]
                return not unanswered

            try:
                await holds(all_are_answered)
            except TimeoutError:
                pytest.fail("no data:\n" + "\n".join(f"{panel.title}: {query}" for panel, query in unanswered))
            for query in traced:
                assert prometheus.exemplars(query), f"{query}: no trace"
            for dashboard in build.DASHBOARDS.values():
                for variable in dashboard.variables:
                    assert variable["type"] != "query" or offered(prometheus, variable), variable["name"]
            await holds(lambda: 1 in prometheus.asked("voicepipe_directory_pop_silent").values())


async def holds(condition: Callable[[], bool]) -> None:
    """As `until`, beside the event loop: it answers the scrapes. Raises TimeoutError."""
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
