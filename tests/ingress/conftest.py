from typing import Any

import h11
import pytest

from tests.support.server_loop import pytest_asyncio_loop_factories
from voicepipe.ingress import server
from voicepipe.ingress.realtime import server_events, translate
from voicepipe.ingress.visits import ConnectionLimits, Visits

__all__ = ["pytest_asyncio_loop_factories"]


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

    def recorded(room: ConnectionLimits, proxies: tuple[str, ...]) -> Visits:
        made.append(Visits(room, proxies))
        return made[-1]

    monkeypatch.setattr(server, "Visits", recorded)
    return made
