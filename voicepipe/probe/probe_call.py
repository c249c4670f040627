"""Places one call of a probe, and judges it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from latency_probes.caller import Caller
from latency_probes.conversation import converse
from latency_probes.failed_call import CallFailed
from latency_probes.measure import judge_call
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from latency_probes.records import CallRecord
from latency_probes.sip import ANYONE, SipCaller, Subscriber
from latency_probes.timeline import Timeline
from latency_probes.via import Via
from latency_probes.webrtc import WebRtcCaller
from voicepipe.base.errors import ProbeError, VoicepipeError
from voicepipe.config.probe_config import ProbeSection
from voicepipe.probe.probe_targets import ProbeQuestion, ProbeSeries
from voicepipe.probe.verdict import ProbeVerdict, verdict

logger = logging.getLogger(__name__)

ROOM = "quiet"
SEED = 1
LAG_PERIOD_S = 0.01


class OwnLag:
    """How late this process was, at most."""

    def __init__(self) -> None:
        self.worst_s = 0.0

    @asynccontextmanager
    async def measured(self) -> AsyncIterator["OwnLag"]:
        """Measures inside the block."""
        task = asyncio.create_task(self._run())
        try:
            yield self
        finally:
            task.cancel()

    async def _run(self) -> None:
        while True:
            due = time.monotonic() + LAG_PERIOD_S
            await asyncio.sleep(LAG_PERIOD_S)
            self.worst_s = max(self.worst_s, time.monotonic() - due)


def caller_of(series: ProbeSeries) -> Caller:
    """Who places a call of this series. Raises ConfigError: a secret is missing."""
    its, key = series.its, series.key()
    if series.by == "sip":
        who = Subscriber(user=its.user, password=series.password()) if its.user else ANYONE
        return SipCaller(series.url, ROOM, SEED, key, its.agent, phone=series.phone, subscriber=who)
    place = (its.place[0], its.place[1]) if its.place else None
    via = Via(series.url, series.by, key, its.agent, place) if series.way == "directory" else None
    if series.by == "webrtc":
        return WebRtcCaller(series.url, ROOM, SEED, key, its.agent, via=via)
    return RealtimeCaller(series.url, ROOM, SEED, key, its.agent, via=via)


async def probed(
    series: ProbeSeries, question: ProbeQuestion, probe: ProbeSection, late: Callable[[float], None]
) -> ProbeVerdict:
    """Call, ask, listen, hang up; what came of it. Raises nothing but what cancels it. `late` is told by how many
    seconds this process was late."""
    utterance = question.utterance
    plan = CallPlan(1, ROOM, (Turn(utterance.kind, utterance),))
    async with OwnLag().measured() as lag:
        record = await _held(series, plan, probe)
    worst_s = max(lag.worst_s, record.lag_s)
    late(worst_s)
    lag_ms = 1000 * worst_s
    return await asyncio.to_thread(_judged, record, series, question, lag_ms if lag_ms > probe.unsure_ms else 0.0)


async def _held(series: ProbeSeries, plan: CallPlan, probe: ProbeSection) -> CallRecord:
    record = CallRecord(plan, Timeline())
    try:
        caller = await asyncio.to_thread(caller_of, series)  # It reads the key's file.
        record = CallRecord(plan, caller.timeline)
        async with asyncio.timeout(probe.limit_s):
            return await converse(caller, plan, SEED, probe.dial_s)
    except TimeoutError:
        record.error = CallFailed(f"the call was not over after {probe.limit_s} s: it was ended", "ended")
    except ProbeError as error:
        record.error = error
    except VoicepipeError as error:
        record.error = CallFailed(str(error), "failed", "probe")
    except Exception as bug:  # One call must not end the calls to all other targets.
        logger.exception("a call to %s by %s failed", series.target, series.by)
        record.error = CallFailed(f"the probe itself failed ({bug!r}): see its log", "failed", "probe")
    return record


def _judged(record: CallRecord, series: ProbeSeries, question: ProbeQuestion, lag_ms: float) -> ProbeVerdict:
    results = judge_call(record, {}) if record.said else []
    return verdict(record, results[0] if results else None, series, question, lag_ms)
