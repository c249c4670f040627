"""Places that are held by offers whose callers have not connected yet."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from voicepipe.call_api import Tenant
from voicepipe.config import Config
from voicepipe.errors import TenantFull

LEAST = 4
"""So many calls of a tenant may wait on the smallest PoP."""


class Waiting:
    """Of one PoP. An offer takes a place and costs its sender nothing, and whoever never connects keeps it for
    `webrtc.connect_ms`: so where several tenants share a PoP none may have half of its places waiting."""

    def __init__(self, config: Config) -> None:
        self._most = max(LEAST, config.pop.slots // 2) if len(config.tenants) > 1 else config.pop.slots
        self._by_tenant: Counter[str] = Counter()

    @contextmanager
    def place(self, tenant: Tenant) -> Iterator[None]:
        """One more call of this tenant waits within the context. Raises TenantFull."""
        if self._by_tenant[tenant.name] >= self._most:
            raise TenantFull(
                f"{self._most} calls of tenant {tenant.name} wait for their callers to connect; let these do so, or "
                "hang them up, and try again."
            )
        self._by_tenant[tenant.name] += 1
        try:
            yield
        finally:
            self._by_tenant[tenant.name] -= 1
