"""The server's loop."""

from tests.ingress.conftest import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
