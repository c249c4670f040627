"""The server's loop, whose sockets these are."""

from tests.ingress.conftest import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
