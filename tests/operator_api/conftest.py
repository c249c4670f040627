from tests.support.server_loop import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
