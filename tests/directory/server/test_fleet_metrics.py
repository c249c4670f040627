"""A directory's figures for Prometheus."""

from collections.abc import AsyncIterator

import httpx
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

from tests.directory.server.in_process import asking, three_pops


@pytest_asyncio.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with asking(three_pops()) as made:
        yield made


async def test_prometheus_reads_where_calls_went_and_how_the_pops_are(client: httpx.AsyncClient) -> None:
    assert (await client.post("/v1/calls", json={"kind": "websocket"})).status_code == 200
    nowhere = {"kind": "websocket", "require": {"zone": "nowhere"}}
    assert (await client.post("/v1/calls", json=nowhere)).status_code == 503
    tried = {"kind": "websocket", "tried": ["lhr", "nobody-knows-it"]}
    assert (await client.post("/v1/calls", json=tried)).status_code == 200
    assert (await client.get("/metrics")).status_code == 401  # a tenant's key
    answer = await client.get("/metrics", headers={"Authorization": "Bearer k-metrics"})
    seen = {
        (sample.name.removeprefix("voicepipe_directory_"), *(sample.labels[name] for name in ("pop", "reason")
                                                            if name in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }  # fmt: skip
    assert seen["placements_total", "fra", "nearest"] == 2
    assert seen["placements_failed_total", "none_answers"] == 1 and seen["placements_failed_total", "no_room"] == 0
    assert seen["placements_bounced_total", "lhr", "told"] == 1
    assert not any(labels[1:2] == ("nobody-knows-it",) for labels in seen)
    assert seen["placements_bounced_total", "fra", "refused"] == 0, "it is there before the first one"
    assert seen["pop_takes_calls", "lhr"] == 1 and seen["pop_calls_coming", "fra"] == 2
    assert seen["pop_report_age_seconds", "iad"] < 60
    assert seen["calls_relayed",] == 0
