"""A probe as it is run: for ever with its metrics, or for one round."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from latency_probes.realtime import origin, trusted
from tests.latency_probes.fake_server import Script, fake_server
from tests.support.authority import Authority
from tests.support.ports import free_port
from voicepipe.base.errors import ConfigError
from voicepipe.config.fleet_config import TlsConfig
from voicepipe.config.probe_config import ProbeConfig, ProbedConfig, ProbeHttpConfig, ProbeSection
from voicepipe.probe import run

RIGHT = Script(heard="when do you open on sunday")
PATIENT = ProbeSection(unsure_ms=600_000, again_s=1)


def config(url: str, http: ProbeHttpConfig | None = None) -> ProbeConfig:
    targets = (
        ProbedConfig(name="fra1", url=origin(url), budget_ms=60_000),
        ProbedConfig(name="dead", url="http://127.0.0.1:9"),
    )
    return ProbeConfig(probe=PATIENT, http=http or ProbeHttpConfig(), targets=targets)


async def test_one_round_is_told_and_ends_with_1_where_something_failed(capsys: pytest.CaptureFixture[str]) -> None:
    async with fake_server(RIGHT) as url:
        assert await run.once(config(url)) == 1
        said = capsys.readouterr().out
        assert "ok fra1 fra1 (straight) by websocket: answered after" in said
        assert "connect dead dead (straight) by websocket: no server answers" in said
        assert await run.once(ProbeConfig(probe=PATIENT, targets=config(url).targets[:1])) == 0


async def test_metrics_and_health_are_served(tmp_path: Path) -> None:
    await asyncio.to_thread((file := tmp_path / "key").write_text, "k-metrics")
    http = ProbeHttpConfig(port=free_port(), metrics_key_file=str(file))
    async with fake_server(RIGHT) as url:
        serving = asyncio.create_task(run.serve(config(url, http)))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{http.port}", trust_env=False, timeout=60) as client:

            async def told() -> str:
                answer = await client.get("/metrics", headers={"Authorization": "Bearer k-metrics"})
                return answer.text if answer.is_success else ""

            async with asyncio.timeout(60):
                await reached(client)
                while 'voicepipe_probe_up{by="websocket",pop="fra1"' not in await told():  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
            assert (await client.get("/metrics")).status_code == 401
            assert (await client.get("/metrics", headers={"Authorization": "Bearer other"})).status_code == 401
            assert (await client.get("/healthz")).json() == {"status": "ok"}
            assert (await client.get("/readyz")).status_code == 200
        serving.cancel()
        await asyncio.wait([serving])


async def reached(client: httpx.AsyncClient) -> None:
    """Returns once it serves."""
    async with asyncio.timeout(60):
        while True:
            with suppress(httpx.ConnectError):
                await client.get("/healthz")
                return
            await asyncio.sleep(0.05)


async def test_without_a_key_to_them_metrics_are_for_this_machine() -> None:
    http = ProbeHttpConfig(port=free_port())
    async with fake_server(RIGHT) as url:
        serving = asyncio.create_task(run.serve(config(url, http)))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{http.port}", trust_env=False) as client:
            await reached(client)
            assert "voicepipe_probe_every_seconds 60.0" in (await client.get("/metrics")).text
        serving.cancel()
        await asyncio.wait([serving])


def one(**target: Any) -> ProbeConfig:
    return ProbeConfig(targets=(ProbedConfig(name="a", url="http://127.0.0.1:9", **target),))


@pytest.mark.parametrize(
    ("its", "says"),
    [
        (ProbeConfig(), "targets: there are none"),
        (
            ProbeConfig(targets=(ProbedConfig(name="a", url="http://x", key_env="NOT_SET"),)),
            r"targets\[0\].key_env: the environment variable NOT_SET is not set",
        ),
        (ProbeConfig(targets=(ProbedConfig(name="a", url="http://x", question="no"),)), r"targets\[0\].question"),
    ],
)
async def test_what_cannot_be_called(its: ProbeConfig, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        await run.once(its)


async def test_certificates_of_the_operators_own_are_trusted(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    before = trusted().cert_store_stats()["x509_ca"]
    await run.prepared(replace(one(), tls=TlsConfig(ca=str(authority.ca))))
    assert trusted().cert_store_stats()["x509_ca"] == before + 1
