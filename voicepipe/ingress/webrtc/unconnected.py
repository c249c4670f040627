"""Limits calls whose callers have not connected yet: an offer costs its sender nothing. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from voicepipe.base.errors import TenantFull
from voicepipe.config import Config
from voicepipe.ingress.api_keys import Caller

LEAST_WAITING = 4
"""Calls of a tenant that may wait on the smallest PoP."""
LEAST_OF_KEY, OF_KEY = 2, 4
"""Calls of one `ek_` key that may wait: at least the first, or one in four of its tenant's. A page that is reloaded, or
dials again after a time-out, leaves one or two calls waiting behind it; an app that gives one key to several devices
has a few more."""


class UnconnectedCalls:
    """Limits the slots of one PoP that are held by offers whose callers have not connected yet. An offer takes a slot
    and costs its sender nothing, and a caller that never connects keeps it for `webrtc.connect_ms`. So where several
    tenants share a PoP, none may have more than half of its slots waiting. All `ek_` keys of a tenant, which browsers
    have, may together have half of the tenant's, and one of them a quarter."""

    def __init__(self, config: Callable[[], Config]) -> None:
        """`config`: the PoP's configuration at present, whose tenants a reload may change."""
        self._config = config
        self._waiting: Counter[tuple[str, str]] = Counter()
        """Waiting calls by tenant, by tenant and `ek_` key, and of all its `ek_` keys ("ek_")."""

    @contextmanager
    def slot(self, who: Caller) -> Iterator[None]:
        """One more call of this caller waits within the context. Raises TenantFull."""
        config = self._config()
        of_tenant = max(LEAST_WAITING, config.pop.slots // 2) if config.is_shared else config.pop.slots
        name, most = who.tenant.name, min(of_tenant, who.tenant.slots or of_tenant)
        self._check((name, ""), of_tenant, f"tenant {name}")
        if who.secret:
            self._check((name, "ek_"), max(LEAST_WAITING, most // 2), "ek_ keys")
            of_key = max(LEAST_OF_KEY, most // OF_KEY)
            self._check((name, who.secret), max(1, min(of_key, most - 1)), "this ek_ key")  # One is left to others.
        counted = {(name, ""), (name, who.secret), *([(name, "ek_")] if who.secret else [])}
        self._waiting.update(counted)
        try:
            yield
        finally:
            self._waiting.subtract(counted)
            self._waiting += Counter()  # What is down to nothing is forgotten: keys come and go.

    def _check(self, of: tuple[str, str], most: int, whose: str) -> None:
        if self._waiting[of] >= most:
            raise TenantFull(
                f"{most} calls of {whose} wait for their callers to connect; let these do so, or hang them up, and try "
                "again."
            )
