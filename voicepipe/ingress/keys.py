"""Keys: who calls, and the short-lived `ek_` keys that a browser may hold. In memory; a restart forgets them."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from voicepipe.call_api import PopApi, Tenant
from voicepipe.errors import Unauthorized

KEPT = 10_000
"""Secrets at a time; beyond that the oldest goes."""

KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""How browsers, which cannot set headers on a WebSocket, hand over their key."""


class ExpiresAfter(Struct, frozen=True):
    seconds: Annotated[int, Meta(ge=10, le=7200)] = 600
    anchor: Literal["created_at"] = "created_at"


class SecretRequest(Struct, frozen=True):
    """Body of POST /v1/realtime/client_secrets."""

    expires_after: ExpiresAfter = ExpiresAfter()
    session: dict[str, Any] = msgspec.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who connects, and the session that was settled for them when their `ek_` key was made."""

    tenant: Tenant
    agent: str | None = None
    """None: the caller says which."""
    session: dict[str, Any] = field(default_factory=dict)
    """As in `session.update`, already validated."""


class Secrets:
    """The `ek_` keys of one PoP. `clock` gives Unix seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._callers: dict[str, tuple[float, Caller]] = {}

    def make(self, caller: Caller, seconds: int) -> tuple[str, int]:
        """A new key and the Unix second at which it expires."""
        now = self._clock()
        if len(self._callers) >= KEPT:
            self._callers = {key: entry for key, entry in self._callers.items() if entry[0] > now}
        if len(self._callers) >= KEPT:
            del self._callers[next(iter(self._callers))]
        key, expires_at = f"ek_{secrets.token_hex(16)}", int(now) + seconds
        self._callers[key] = expires_at, caller
        return key, expires_at

    def find(self, key: str) -> Caller:
        """Whom a key was made for; it may be used more than once. Raises Unauthorized."""
        expires_at, caller = self._callers.get(key, (0.0, None))
        if caller is None or expires_at <= self._clock():
            raise Unauthorized("This ek_ key is unknown or has expired: ask for another.")
        return caller


def key_of(authorization: str | None, subprotocols: list[str]) -> str | None:
    """The key in an Authorization header, or in the subprotocols offered."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    offered = (name.removeprefix(KEY_SUBPROTOCOL) for name in subprotocols if name.startswith(KEY_SUBPROTOCOL))
    return next(offered, None)


def caller(pop: PopApi, known: Secrets, key: str | None) -> Caller:
    """Who holds `key`. Raises Unauthorized."""
    return known.find(key) if key and key.startswith("ek_") else Caller(pop.tenant(key))
