"""Whom a probe calls when, and when it calls again."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tests.probe.series import QUESTION
from voicepipe.base.errors import ConfigError
from voicepipe.config.probe_config import ProbeConfig, ProbedConfig, ProbeSection
from voicepipe.probe import probe_service
from voicepipe.probe.probe_metrics import ProbeMetrics
from voicepipe.probe.probe_service import ProbeService, SeriesCourse
from voicepipe.probe.probe_targets import ListedPop, ListedPops, ProbeSeries
from voicepipe.probe.verdict import Fault, ProbeVerdict

WELL = ProbeVerdict("fra1", None, "", True, "", 0.2, 0.0, True, 0.1)
DEAD = ProbeVerdict("fra1", "connect", "", True, "nobody is there")
UNSURE = DEAD._replace(sure=False)
POPS = tuple(ProbedConfig(name=name, url=f"http://{name}") for name in ("a", "b", "c", "d"))


def test_a_fault_is_sure_after_a_second_call_at_once() -> None:
    course = SeriesCourse()
    assert [course.took(verdict) for verdict in (WELL, DEAD, DEAD, DEAD, WELL, DEAD, WELL)] == [
        False, True, False, False, False, True, False,
    ]  # fmt: skip


def test_what_says_nothing_is_tried_again_and_counts_for_nothing() -> None:
    course = SeriesCourse()
    assert [course.took(verdict) for verdict in (UNSURE, UNSURE, UNSURE, UNSURE)] == [True, True, False, False]
    assert course.in_a_row == 0
    assert course.took(DEAD) and course.took(UNSURE) and course.in_a_row == 1


def service(
    monkeypatch: pytest.MonkeyPatch, answer: Callable[[ProbeSeries], ProbeVerdict], *targets: ProbedConfig, **probe: Any
) -> ProbeService:
    async def probed(its: ProbeSeries, *args: object) -> ProbeVerdict:
        await asyncio.sleep(8.0)
        return answer(its)

    monkeypatch.setattr(probe_service, "probed", probed)
    config = ProbeConfig(probe=ProbeSection(**probe), targets=targets)
    return ProbeService(config, [QUESTION] * len(targets), ProbeMetrics(config))


async def during(its: ProbeService, seconds: float) -> None:
    running = asyncio.create_task(its.run())
    await asyncio.sleep(seconds)
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.virtual_time
async def test_calls_are_spread_over_the_round_and_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    began: dict[str, list[float]] = {}
    loop = asyncio.get_running_loop()

    def answer(its: ProbeSeries) -> ProbeVerdict:
        began.setdefault(its.target, []).append(round(loop.time() - start - 8.0, 1))
        return WELL

    its, start = service(monkeypatch, answer, *POPS), loop.time()
    await during(its, 125.0)
    assert {name: times[0] for name, times in began.items()} == {"a": 0.0, "b": 37.1, "c": 14.2, "d": 51.2}
    assert all(times[1] - times[0] == pytest.approx(60.0, abs=0.2) for times in began.values())
    assert its.status == "ok"


@pytest.mark.virtual_time
async def test_no_more_calls_at_a_time_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    calling = Counter[str]()

    async def probed(*args: object) -> ProbeVerdict:
        calling["now"] += 1
        calling["most"] = max(calling["most"], calling["now"])
        await asyncio.sleep(30.0)
        calling["now"] -= 1
        calling["all"] += 1
        return WELL

    its = service(monkeypatch, lambda its: WELL, *POPS, calls=1)
    monkeypatch.setattr(probe_service, "probed", probed)
    await during(its, 301.0)
    assert (calling["most"], calling["all"]) == (1, 10)


@pytest.mark.virtual_time
async def test_a_dead_pop_is_called_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    began: list[float] = []
    loop = asyncio.get_running_loop()

    def answer(its: ProbeSeries) -> ProbeVerdict:
        began.append(round(loop.time() - start - 8.0))
        return DEAD

    its, start = service(monkeypatch, answer, POPS[0]), loop.time()
    told: list[tuple[Any, ...]] = []
    monkeypatch.setattr(its._metrics, "called", lambda *args: told.append(args))
    await during(its, 150.0)
    assert began == [0, 13, 60, 120]
    assert [in_a_row for _, _, in_a_row in told] == [1, 2, 3, 4]


@pytest.mark.virtual_time
async def test_the_pops_of_a_directory_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[Any] = [
        ListedPops((ListedPop("fra1", "http://fra1"),)),
        ListedPops((ListedPop("lhr1", "http://lhr1"),)),
        ConfigError("the directory is away"),
    ]

    async def listed(*args: object) -> ListedPops:
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    called: list[str] = []

    def answer(its: ProbeSeries) -> ProbeVerdict:
        called.append(its.pop)
        return WELL._replace(pop=its.pop)

    monkeypatch.setattr(probe_service, "listed", listed)
    its = service(monkeypatch, answer, ProbedConfig(name="all", directory="http://d", straight=True))
    await during(its, 290.0)
    assert Counter(called) == {"": 5, "fra1": 1, "lhr1": 4}, "what a directory said last is kept"


@pytest.mark.virtual_time
async def test_a_pop_that_has_said_that_it_ends_is_no_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    here = ListedPop("fra1", "http://fra1")
    answers = [ListedPops((here,)), ListedPops(())]

    async def listed(*args: object) -> ListedPops:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def answer(its: ProbeSeries) -> ProbeVerdict:
        return DEAD if its.pop else WELL

    monkeypatch.setattr(probe_service, "listed", listed)
    its = service(monkeypatch, answer, ProbedConfig(name="all", directory="http://d", straight=True))
    told: list[tuple[Any, ...]] = []
    monkeypatch.setattr(its._metrics, "called", lambda *args: told.append(args))
    await during(its, 59.0)
    assert [(series.pop, in_a_row) for series, _, in_a_row in told if series.pop] == [("fra1", 1)]


@pytest.mark.virtual_time
async def test_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = Counter[str]()

    def answer(its: ProbeSeries) -> ProbeVerdict:
        calls[its.target] += 1
        return DEAD if its.target == "b" or (its.target == "c" and calls["c"] == 1) else WELL

    its = service(monkeypatch, answer, *POPS)
    found: dict[str, Fault | None] = {}
    await its.once(lambda series, verdict: found.update({series.target: verdict.fault}))
    assert found == {"a": None, "b": "connect", "c": None, "d": None}
    assert calls == {"a": 1, "b": 2, "c": 2, "d": 1}


@pytest.mark.virtual_time
async def test_a_probe_without_calls_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    its = service(monkeypatch, lambda its: WELL, POPS[0])
    assert its.status == "ok"
    its._last -= 181.0
    assert its.status == "silent"
