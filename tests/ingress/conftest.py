"""The server runs on uvloop, whose sockets differ from asyncio's where connections break: so do its tests,
but for those in virtual time."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from tests.support.virtual_time import VirtualTimeLoop
from voicepipe.ingress.realtime import server_events, translate


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    virtual = item.get_closest_marker("virtual_time")
    return {"virtual": VirtualTimeLoop} if virtual else {"uvloop": uvloop.new_event_loop}


@pytest.fixture
def unencoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call fails if any of it is told in the Realtime convention."""

    def fail(*args: Any, **named: Any) -> None:
        raise AssertionError("told in the Realtime convention, and nobody listens")

    monkeypatch.setattr(server_events, "encode", fail)
    monkeypatch.setattr(translate.Translator, "__init__", fail)
