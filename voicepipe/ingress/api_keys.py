"""Keys: which tenant holds one, the caller that it stands for, and the short-lived `ek_` keys for browsers. Those are
in memory: a restart forgets them."""

import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta, Struct
from starlette.requests import HTTPConnection

from voicepipe.agent import Part
from voicepipe.base.errors import TooManySecrets, Unauthorized
from voicepipe.call_api import NO_TENANT, TOKEN, Grant, KeyHolders, Tenant, Tokens
from voicepipe.config import KeyOwner
from voicepipe.config.credentials import OperatorKeys

KEPT, KEPT_BYTES = 10_000, 16 * 1024 * 1024
"""A tenant's secrets at a time that have not expired, and the bytes of their sessions."""
KEY_BYTES = 256
"""Bytes that a key takes besides its session."""

OPERATOR = "(operator)"
"""The account of those who may see all tenants' calls."""
KEY_SUBPROTOCOL = "openai-insecure-api-key."
"""The prefix of the subprotocol in which browsers send their key, since they cannot set headers on a WebSocket."""


class Tenants:
    """The tenants by their keys. Without any, everybody is the tenant "local". `here` is the server, as callers know
    it."""

    def __init__(self, owners: Mapping[str, KeyOwner], here: str) -> None:
        self._owners = owners
        self._here = here

    def become(self, owners: Mapping[str, KeyOwner]) -> None:
        """Replace the keys."""
        self._owners = owners

    def __bool__(self) -> bool:
        return bool(self._owners)

    def tenant(self, key: str | None) -> Tenant:
        """The tenant that holds this key. Raises Unauthorized."""
        if not self._owners:
            return Tenant(NO_TENANT)
        for known, owner in self._owners.items():
            if key is not None and is_key(known, key):
                return Tenant(owner.name, owner.agents, owner.slots)
        if not key:
            raise Unauthorized(f"This {self._here} wants a key: send it as `Authorization: Bearer KEY`.")
        raise Unauthorized(f"This key is not known here: ask whoever runs this {self._here} for one.")

    def named(self, name: str) -> Tenant:
        """The tenant for which a directory has made an `ek_` key. Raises Unauthorized: there is no such tenant any
        more."""
        if not self._owners:
            return Tenant(NO_TENANT)
        owner = next((owner for owner in self._owners.values() if owner.name == name), None)
        if owner is None:
            raise Unauthorized(f"The owner of this key is not known to this {self._here} any more.")
        return Tenant(owner.name, owner.agents, owner.slots)


def is_key(known: str, key: str) -> bool:
    """Compares keys in constant time."""
    return hmac.compare_digest(known.encode(), key.encode())


def may_scrape(tenants: Tenants, keys: OperatorKeys, key: str | None) -> bool:
    """Whether the holder of this key may read the metrics of a server. None: programs on its machine may, without a
    key."""
    if not key:
        return not (tenants or keys.metrics)
    return any(known and is_key(known, key) for known in keys)


class ExpiresAfter(Struct, frozen=True):
    """How long a key is to be valid, as the request for it says."""

    seconds: Annotated[int, Meta(ge=10, le=7200)] = 600
    anchor: Literal["created_at"] = "created_at"


class SecretRequest(Struct, frozen=True):
    """Body of POST /v1/realtime/client_secrets."""

    expires_after: ExpiresAfter = ExpiresAfter()
    session: msgspec.Raw = msgspec.Raw(b"{}")
    """Raw JSON: decoded once, where the effective session is made of it."""
    locked: tuple[Part, ...] = ()
    """Parts of the session that the key's holder cannot change."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller, and the effective session that their `ek_` key was made with."""

    tenant: Tenant
    agent: str | None = None
    """None: the caller says which."""
    session: bytes = b"{}"
    """As in `session.update`, already validated. Kept as JSON and decoded only where a call begins: decoding takes
    time, and the objects would take many times as much memory."""
    locked: tuple[Part, ...] = ()
    secret: str = field(default="", repr=False, compare=False)
    """The short-lived key that they hold: an `ek_` key (for a directory's, its id) or a token for one call. Empty: they
    hold a tenant's own key, or none."""
    grant: Grant | None = None
    """What their token allows; None: they hold none."""

    @property
    def network(self) -> str:
        """As `Grant.network`."""
        return self.grant.network if self.grant else ""


def account(viewer: str | None) -> Caller:
    """The caller on whose account a viewer's requests count (`PopApi.viewer`): their tenant, or `OPERATOR` for one
    who may see every tenant's calls."""
    return Caller(Tenant(OPERATOR if viewer is None else viewer))


def viewer_of(who: Caller) -> str | None:
    """The tenant whose calls this caller may see; None: everyone's. The inverse of `account`."""
    return None if who.tenant.name == OPERATOR else who.tenant.name


class HandedSecret(msgspec.Struct, frozen=True):
    """An `ek_` key that the process before this one has made."""

    key: str
    until: int
    """The Unix second at which it expires."""
    tenant: Tenant
    agent: str | None
    session: bytes
    locked: tuple[Part, ...] = ()


@dataclass(slots=True)
class _TenantSecrets:
    """The `ek_` keys of one tenant."""

    until: dict[str, int] = field(default_factory=dict)
    """Key -> the Unix second at which it expires."""
    bytes: int = 0


class ShortLived(Protocol):
    """Knows the holders of `ek_` keys."""

    def find(self, key: str) -> Caller:
        """The caller for whom a key was made; a key may be used more than once. Raises Unauthorized."""


class ClientSecrets:
    """The `ek_` keys that one PoP has made. Each tenant has its own limit, so that none takes up another's. `clock`
    gives Unix seconds; `knows` tells whether there is still a tenant of this name; `made` gets each key as it is made,
    as in `take_over`."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        knows: Callable[[str], bool] = lambda tenant: True,
        made: Callable[[list[HandedSecret]], None] = lambda keys: None,
    ) -> None:
        self._clock = clock
        self._knows = knows
        self._made = made
        self._callers: dict[str, Caller] = {}
        """Key -> its caller."""
        self._by_tenant: dict[str, _TenantSecrets] = {}

    def make(self, caller: Caller, seconds: int) -> tuple[str, int]:
        """A new key and the Unix second at which it expires. Raises TooManySecrets: its tenant has no room for one."""
        size, now = _size(caller), int(self._clock())
        kept = self._by_tenant.setdefault(caller.tenant.name, _TenantSecrets())
        if _full(kept, size):
            self._clear(kept, now)
        if _full(kept, size):
            have = f"{len(kept.until)} ek_ keys, {kept.bytes} bytes, that have not expired"
            raise TooManySecrets(
                f"Tenant {caller.tenant.name} has {have}; {KEPT} are kept, of {KEPT_BYTES} bytes. Ask for a shorter "
                "expires_after, or wait for some to expire."
            )
        key, until = f"ek_{secrets.token_hex(16)}", now + seconds
        self._keep(key, until, caller)
        self._made([HandedSecret(key, until, caller.tenant, caller.agent, caller.session, caller.locked)])
        return key, until

    def find(self, key: str) -> Caller:
        caller = self._callers.get(key)
        if caller is None or self._by_tenant[caller.tenant.name].until[key] <= self._clock():
            raise Unauthorized("This ek_ key is unknown or has expired: ask for another.")
        if not self._knows(caller.tenant.name):
            raise Unauthorized("The owner of this ek_ key is not known to this PoP any more.")
        return replace(caller, secret=key)

    def handed_over(self) -> list[HandedSecret]:
        """The keys, for the process that takes over."""
        return [
            HandedSecret(key, until, caller.tenant, caller.agent, caller.session, caller.locked)
            for kept in self._by_tenant.values()
            for key, until in kept.until.items()
            for caller in [self._callers[key]]
        ]

    def take_over(self, handed: Iterable[HandedSecret]) -> None:
        """Also accept keys that the process before this one has made."""
        for one in handed:
            if one.key not in self._callers:
                self._keep(one.key, one.until, Caller(one.tenant, one.agent, one.session, one.locked))

    def _keep(self, key: str, until: int, caller: Caller) -> None:
        kept = self._by_tenant.setdefault(caller.tenant.name, _TenantSecrets())
        kept.until[key] = until
        kept.bytes += _size(caller)
        self._callers[key] = caller

    def _clear(self, kept: _TenantSecrets, now: int) -> None:
        for key in [key for key, until in kept.until.items() if until <= now]:
            kept.bytes -= _size(self._callers.pop(key))
            del kept.until[key]


def _size(caller: Caller) -> int:
    return len(caller.session) + KEY_BYTES


def _full(kept: _TenantSecrets, more: int) -> bool:
    return len(kept.until) >= KEPT or kept.bytes + more > KEPT_BYTES


def key_of(authorization: str | None, subprotocols: list[str]) -> str | None:
    """The key in an Authorization header, or in the subprotocols offered."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() == "bearer" and key.strip():
        return key.strip()
    offered = (name.removeprefix(KEY_SUBPROTOCOL) for name in subprotocols if name.startswith(KEY_SUBPROTOCOL))
    return next(offered, None)


def token_of(query: Mapping[str, str]) -> str | None:
    """The token in an address, for clients that can set neither headers nor subprotocols. No key is taken there, since
    addresses are logged: a token begins one call, within a minute, and then is good for nothing but to end it."""
    token = query.get("token", "")
    return token if token.startswith(TOKEN) else None


def offered(connection: HTTPConnection) -> str | None:
    """The key or the token that a request or a WebSocket brings."""
    protocols = connection.scope.get("subprotocols", [])
    return key_of(connection.headers.get("authorization"), protocols) or token_of(connection.query_params)


def brings_token(connection: HTTPConnection) -> bool:
    """Whether the key that it brings looks like a directory's token."""
    return (offered(connection) or "").startswith(TOKEN)


def caller(
    holders: KeyHolders, tokens: Tokens | None, known: ShortLived, key: str | None, spent: bool = False
) -> Caller:
    """The caller who holds `key`; `spent` as in `Tokens.read`. Raises Unauthorized."""
    if key and key.startswith("ek_"):
        return known.find(key)
    if key and key.startswith(TOKEN):
        return _granted(tokens, key, spent)
    return Caller(holders.tenant(key))


def _granted(tokens: Tokens | None, token: str, spent: bool) -> Caller:
    if tokens is None:
        raise Unauthorized("No directory's tokens are taken here: use a key.")
    grant = tokens.read(token, spent)
    tenant = Tenant(grant.tenant, grant.agents, grant.slots)
    secret = grant.holder or (token if grant.begins else "")
    return Caller(tenant, grant.agent or None, locked=grant.locked, secret=secret, grant=grant)
