"""How many calls may wait for their callers to connect."""

from contextlib import ExitStack

import msgspec
import pytest

from voicepipe.base.errors import TenantFull
from voicepipe.call_api import Tenant
from voicepipe.config import Config, PopConfig, TenantConfig
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.webrtc.unconnected import UnconnectedCalls

ACME, OTHER = (TenantConfig(name=name, key_env=f"{name.upper()}_KEY") for name in ("acme", "other"))


def placed(waiting: UnconnectedCalls, who: Caller, held: ExitStack) -> int:
    """How many places `who` gets, one after the other."""
    for count in range(100):
        try:
            held.enter_context(waiting.slot(who))
        except TenantFull:
            return count
    return 100


@pytest.mark.parametrize(
    ("tenants", "slots", "of_tenant", "one_key", "ek_keys", "own_key"),
    [
        ((ACME,), 36, None, 9, 18, 36),
        ((ACME, OTHER), 36, None, 4, 9, 18),
        ((ACME, OTHER), 36, 8, 2, 4, 18),  # `PopApi.admit` holds the tenant to its 8
        ((ACME,), 4, None, 2, 4, 4),
        ((ACME,), 2, None, 1, 2, 2),
        ((ACME,), 36, 1, 1, 4, 36),
    ],
)
def test_neither_one_ek_key_nor_all_of_them_have_all_places_of_their_tenant(
    tenants: tuple[TenantConfig, ...], slots: int, of_tenant: int | None, one_key: int, ek_keys: int, own_key: int
) -> None:
    config = msgspec.structs.replace(Config(), tenants=tenants, pop=PopConfig(slots=slots))
    waiting = UnconnectedCalls(lambda: config)
    tenant = Tenant("acme", slots=of_tenant)
    with ExitStack() as held:
        assert placed(waiting, Caller(tenant, secret="ek_0"), held) == one_key
        others = sum(placed(waiting, Caller(tenant, secret=f"ek_{n}"), held) for n in range(1, 40))
        assert one_key + others == ek_keys
    with ExitStack() as held:
        assert placed(waiting, Caller(tenant, secret="ek_0"), held) == one_key, "what was given back is free"
    with ExitStack() as held:
        assert placed(waiting, Caller(tenant), held) == own_key, "its own key asks for many"


def test_a_tenant_that_comes_by_a_reload_has_its_half() -> None:
    config = msgspec.structs.replace(Config(), tenants=(ACME,), pop=PopConfig(slots=36))
    waiting = UnconnectedCalls(lambda: config)
    with ExitStack() as held:
        assert placed(waiting, Caller(Tenant("acme")), held) == 36
    config = msgspec.structs.replace(config, tenants=(ACME, OTHER))
    with ExitStack() as held:
        assert placed(waiting, Caller(Tenant("acme")), held) == 18
