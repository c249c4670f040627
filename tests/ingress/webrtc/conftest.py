"""The server's loop, and stock aiortc peers that look for the loopback address: a test machine may have no other."""

import aioice.ice
import pytest

from tests.ingress.conftest import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]


@pytest.fixture(autouse=True)
def loopback_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["127.0.0.1"])
