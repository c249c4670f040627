"""The tenants' keys, for PoPs and directories."""

import hmac
from collections.abc import Mapping

from voicepipe.base.errors import Unauthorized
from voicepipe.call_api import NO_TENANT, Tenant
from voicepipe.config import KeyOwner
from voicepipe.config.credentials import OperatorKeys


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
