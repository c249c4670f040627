"""For every test: the event loop is guarded against blocking calls, and in CI a skipped test is a failed one."""

import asyncio
import gc
import logging
import os
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from blockbuster import BlockBuster
from hypothesis import settings

from tests.support.virtual_time import VirtualTimeLoop

CI = os.environ.get("CI") == "true"
settings.register_profile("any machine", settings.get_profile("ci" if CI else "default"), deadline=None)
settings.load_profile("any machine")  # No test fails because the machine was slow.


@pytest.fixture(autouse=True, scope="module")
def collector_of_this_module() -> None:
    """The collector leaves alone what stands since earlier modules: a round of it took most of a second of a test."""
    gc.collect()
    gc.freeze()


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loop of an async test: virtual for those marked so."""
    virtual = item.get_closest_marker("virtual_time")
    return {"virtual": VirtualTimeLoop} if virtual else {"real": asyncio.new_event_loop}


@pytest.fixture(autouse=True)
def log_as_before() -> Iterator[None]:
    """Commands choose what of voicepipe's is logged (`--log`), for the whole process."""
    logger = logging.getLogger("voicepipe")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.fixture(scope="session")
def guard() -> BlockBuster:
    """Made once: making it takes as long as guarding a test with it, and there are ten thousand."""
    return BlockBuster(["voicepipe", "latency_probes"])


@pytest.fixture(autouse=True)
def guarded_loop(request: pytest.FixtureRequest, guard: BlockBuster) -> Iterator[None]:
    """A call that blocks (a file, a sleep, a lock) raises BlockingError where voicepipe makes it on the event loop.

    Not for tests of engines and of whole PoPs: those load models while no call is there to wait.
    """
    loads_models = any(request.node.get_closest_marker(marker) for marker in ("engine", "e2e"))
    if not loads_models:
        guard.activate()
    yield
    guard.deactivate()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not item.get_closest_marker("gpu"):
        _no_skip_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _no_skip_in_ci(report)
    return report


def _no_skip_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    """What a test needs and does not find is skipped on a developer's machine, and is a failure in CI."""
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
