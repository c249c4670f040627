"""The server runs on uvloop, whose sockets differ from asyncio's where connections break: so do its tests, but those in
virtual time. A folder's conftest imports the hook.
"""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from tests.support.virtual_time import VirtualTimeLoop


def pytest_asyncio_loop_factories(item: pytest.Item) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    virtual = item.get_closest_marker("virtual_time")
    return {"virtual": VirtualTimeLoop} if virtual else {"uvloop": uvloop.new_event_loop}
