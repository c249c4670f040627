"""Calls of a plan that cannot be placed."""

from http import HTTPStatus

import pytest

from latency_probes import run
from latency_probes.plan import CallPlan, Plan
from latency_probes.realtime import RealtimeCaller
from latency_probes.run import Runner
from tests.latency_probes.fake_server import Script, fake_server
from voicepipe.base.errors import ProbeError

PLAN = Plan((), (CallPlan(1, "quiet", ()), CallPlan(2, "quiet", ()), CallPlan(3, "quiet", ())))


async def test_a_closed_door_ends_the_run_unless_it_is_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "AGAIN_S", 0.0)
    async with fake_server(Script(refuses=HTTPStatus.SERVICE_UNAVAILABLE)) as url:

        def runner(*, gives_up: bool) -> Runner:
            return Runner(lambda plan: RealtimeCaller(url, plan.noise, 1), 1, 1, lambda: None, gives_up)

        with pytest.raises(ProbeError, match="full or draining"):
            await runner(gives_up=True).run(PLAN)
        done = await runner(gives_up=False).run(PLAN)
    assert (done.calls, len(done.failures), done.turns) == (3, 3, [])
