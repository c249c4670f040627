"""The server runs on uvloop, whose sockets differ from asyncio's where connections break: so do its tests,
but for those in virtual time."""

import asyncio
from collections.abc import Callable
from typing import Any

import h11
import pytest
import uvloop

from tests.support.virtual_time import VirtualTimeLoop
from voicepipe.ingress import server
from voicepipe.ingress.realtime import server_events, translate
from voicepipe.ingress.visits import Room, Visits


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


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes that h11 gets, one step of the loop after another."""
    sizes: list[int] = []
    receive_data = h11.Connection.receive_data

    def received(self: h11.Connection, data: bytes) -> None:
        if self.our_role is h11.SERVER:
            sizes.append(len(data))
        receive_data(self, data)

    monkeypatch.setattr(h11.Connection, "receive_data", received)
    return sizes


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[Visits]:
    """Those of the servers that are started."""
    made: list[Visits] = []

    def recorded(room: Room, proxies: tuple[str, ...]) -> Visits:
        made.append(Visits(room, proxies))
        return made[-1]

    monkeypatch.setattr(server, "Visits", recorded)
    return made
