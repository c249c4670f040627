"""The rounds of a probe: who is called when, and when a fault is sure."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from voicepipe.base.errors import ConfigError
from voicepipe.base.tasks import supervised
from voicepipe.config.probe_config import ProbeConfig, check_round
from voicepipe.probe.probe_call import probed
from voicepipe.probe.probe_metrics import ProbeMetrics
from voicepipe.probe.probe_targets import ListedPops, ProbeQuestion, ProbeSeries, configured, listed, straight
from voicepipe.probe.verdict import ProbeVerdict

logger = logging.getLogger(__name__)

SURE_CALLS = 2
"""Calls in a row with a fault that are an alert: one alone may be a lost packet."""
UNSURE_CALLS = 3
"""Calls in a row whose faults may be our own, until the next one waits for its turn."""
SPREAD = 0.618
"""Of a round, from the first call of a series to that of the next: with any number of series their calls are spread
evenly (golden ratio)."""
SILENT_ROUNDS = 3
"""Rounds without a call after which the probe is silent itself."""


@dataclass(slots=True)
class SeriesCourse:
    """The last calls of one series."""

    in_a_row: int = 0
    """Calls with a fault."""
    unsure: int = 0
    """Calls in a row that said nothing."""

    def took(self, verdict: ProbeVerdict) -> bool:
        """Note a call; whether the next one comes sooner than its turn."""
        if not verdict.sure:
            self.unsure += 1
            return self.unsure < UNSURE_CALLS
        self.unsure = 0
        self.in_a_row = self.in_a_row + 1 if verdict.fault else 0
        return 0 < self.in_a_row < SURE_CALLS


class ProbeService:
    """Calls every target again and again. `questions`: of each target."""

    def __init__(self, config: ProbeConfig, questions: Sequence[ProbeQuestion], metrics: ProbeMetrics) -> None:
        self._config = config
        self._questions = questions
        self._metrics = metrics
        self._room = asyncio.Semaphore(config.probe.calls)
        self._running: dict[ProbeSeries, asyncio.Task[None]] = {}
        self._numbers = 0
        self._listed: dict[int, ListedPops] = {}
        """What directories have said last, by the number of the target."""
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()

    @property
    def status(self) -> str:
        """ "ok" or "silent": no call has ended for three rounds."""
        silent_s = self._loop.time() - self._last
        return "silent" if silent_s > SILENT_ROUNDS * self._config.probe.every_s else "ok"

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._follow(group, await self.wanted())
                await asyncio.sleep(self._config.probe.every_s)

    async def once(self, told: Callable[[ProbeSeries, ProbeVerdict], None]) -> None:
        """Call each series once, and again where a failure is not sure; `told` gets what came of each as soon as it is
        known."""

        async def settled(series: ProbeSeries) -> None:
            told(series, await self._settled(series))

        wanted = await self.wanted()
        async with asyncio.TaskGroup() as group:
            for series in wanted:
                group.create_task(settled(series))

    async def wanted(self) -> list[ProbeSeries]:
        """All series at present. A directory that does not say its PoPs keeps those that it said last."""
        found = list(configured(self._config))
        for number, its in enumerate(self._config.targets):
            if its.straight:
                try:
                    self._listed[number] = await listed(its, number)
                except ConfigError as error:
                    logger.warning("%s", error)
                if number in self._listed:
                    found += straight(its, number, self._listed[number])
        try:
            check_round(self._config.probe, len(found))
        except ConfigError as error:
            logger.warning("calls are placed later than every_s says: %s", error)
        return found

    def _follow(self, group: asyncio.TaskGroup, wanted: Sequence[ProbeSeries]) -> None:
        """Begin with what is new, end with what is gone."""
        for series in self._running.keys() - set(wanted):
            self._running.pop(series).cancel()
            self._metrics.forget(series)
        for series in wanted:
            if series not in self._running:
                offset_s = self._numbers * SPREAD % 1 * self._config.probe.every_s
                self._numbers += 1
                name = f"calling {series.target} by {series.by}"
                self._running[series] = group.create_task(supervised(name, partial(self._watch, series, offset_s)))

    async def _watch(self, series: ProbeSeries, offset_s: float) -> None:
        """Call a series in each round, until cancelled."""
        every_s, course = self._config.probe.every_s, SeriesCourse()
        due = self._loop.time() + offset_s
        while True:
            await asyncio.sleep(due - self._loop.time())
            await self._settled(series, course)
            missed = max(0.0, self._loop.time() - due) // every_s
            due += every_s * (missed + 1)

    async def _settled(self, series: ProbeSeries, course: SeriesCourse | None = None) -> ProbeVerdict:
        """Call a series until it is sure what comes of it."""
        course = course or SeriesCourse()
        while True:
            async with self._room:
                verdict = await probed(series, self._questions[series.number], self._config.probe, self._metrics.late)
            again = course.took(verdict)
            self._last = self._loop.time()
            self._metrics.called(series, verdict, course.in_a_row)
            if verdict.fault:
                told = "" if verdict.sure else " (perhaps: this probe was late itself)"
                logger.warning(
                    "%s, %s by %s: %s%s", series.target, verdict.pop or "no PoP", series.by, verdict.says, told
                )
            if not again:
                return verdict
            await asyncio.sleep(self._config.probe.again_s)
            if series.way == "straight" and series.its.straight and series not in await self.wanted():
                self._metrics.forget(series)
                return verdict._replace(fault=None, says="it has ended")
