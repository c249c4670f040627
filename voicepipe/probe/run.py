"""Runs a probe: for ever, with its metrics, or for one round."""

import asyncio
import logging
from typing import Literal

import msgspec
from rich.markup import escape
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from latency_probes import clips
from latency_probes.realtime import idle_frames, trusted
from voicepipe.audio import opus
from voicepipe.base.errors import ConfigError, Refused
from voicepipe.base.figures import for_tables
from voicepipe.base.trust import trusting
from voicepipe.config import HttpConfig
from voicepipe.config.probe_config import ProbeConfig, metrics_key, secrets_of
from voicepipe.ingress import server
from voicepipe.ingress.access import refusal
from voicepipe.ingress.api_keys import is_key
from voicepipe.operator_api import metrics_http
from voicepipe.probe.probe_call import ROOM, SEED
from voicepipe.probe.probe_metrics import ProbeMetrics
from voicepipe.probe.probe_service import ProbeService
from voicepipe.probe.probe_targets import ProbeQuestion, ProbeSeries, questions
from voicepipe.probe.verdict import ProbeVerdict
from voicepipe.serving import runtime

logger = logging.getLogger(__name__)

CONNECTIONS = 100
MESSAGE_BYTES = 4096


class ProbeHealth(msgspec.Struct, frozen=True):
    """Body of GET /healthz of a probe."""

    status: Literal["ok", "silent"]


async def serve(config: ProbeConfig) -> int:
    """Call, and show metrics, until a signal. Raises ConfigError."""
    metrics = ProbeMetrics(config)
    service = ProbeService(config, await prepared(config), metrics)
    http = HttpConfig(host=config.http.host, port=config.http.port)
    http = msgspec.structs.replace(http, port=runtime.free_port(http))
    listener = server.bind(http)
    async with asyncio.TaskGroup() as group:
        ready = asyncio.Event()
        application = app(service, metrics, await asyncio.to_thread(metrics_key(config.http).value))
        group.create_task(server.serve(application, listener, http, CONNECTIONS, MESSAGE_BYTES, ready))
        await ready.wait()
        print(f"probe answers at {runtime.url(http)} (/metrics, /healthz); Ctrl-C stops", flush=True)
        await service.run()
    return 0


def reread() -> None:
    """On SIGHUP: secrets are read for every call anyway; all else at the start."""
    logger.warning("SIGHUP changes nothing: secrets are read for every call; for all else start the probe again")


async def once(config: ProbeConfig) -> int:
    """Call each target once, and those that fail once more; print what was heard. Exit status 1: something failed.
    Raises ConfigError."""
    service = ProbeService(config, await prepared(config), ProbeMetrics(config))
    console, verdicts = for_tables(), list[ProbeVerdict]()

    def told(series: ProbeSeries, verdict: ProbeVerdict) -> None:
        console.print(line_of(series, verdict))
        verdicts.append(verdict)

    await service.once(told)
    return 1 if any(verdict.fault or not verdict.sure for verdict in verdicts) else 0


async def prepared(config: ProbeConfig) -> list[ProbeQuestion]:
    """What is asked, decoded; and what else would take time in a call. Raises ConfigError, ProbeError."""
    if not config.targets:
        raise ConfigError("targets: there are none; add a [[targets]] table with name and url, or directory")

    def made() -> list[ProbeQuestion]:
        for secret in secrets_of(config):
            secret.value()
        asked = questions(config)
        for question in asked:
            clips.speech(question.utterance, SEED)
        opus.load()
        trusting(trusted(), config.tls.ca)
        idle_frames(ROOM, SEED)
        return asked

    return await asyncio.to_thread(made)


def app(service: ProbeService, metrics: ProbeMetrics, key: str) -> Starlette:
    """The ASGI application of a probe."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return refusal(error)

    def health() -> ProbeHealth:
        return ProbeHealth("ok" if service.status == "ok" else "silent")

    def may_read(offered: str | None) -> bool:
        return bool(key) and is_key(key, offered) if offered else not key

    routes = [
        *metrics_http.health_routes(health),
        metrics_http.route(may_read, metrics.read),
    ]
    return Starlette(routes=routes, exception_handlers={Refused: refused})


def line_of(series: ProbeSeries, verdict: ProbeVerdict) -> str:
    """What is printed of a call, with rich's markup."""
    gap = "" if verdict.heard_gap_s is None else f" after {1000 * verdict.heard_gap_s:.0f} ms"
    what = f"{series.target} {verdict.pop or '-'} ({series.way}) by {series.by}: "
    if verdict.fault is None:
        return f"[green]ok[/] {escape(what + (verdict.says or 'answered'))}{gap}"
    stage = f" ({verdict.stage})" if verdict.stage else ""
    unsure = "" if verdict.sure else ", or this machine is too slow to tell"
    return f"[red]{verdict.fault}{stage}[/] {escape(what + verdict.says)}{unsure}"
