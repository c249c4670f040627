"""Keys, and the short-lived ones that are made with them."""

from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop
from voicepipe.base.errors import TooManySecrets, Unauthorized
from voicepipe.call_api import NO_TENANT, Grant, Tenant
from voicepipe.config import TenantConfig
from voicepipe.config.credentials import OperatorKeys
from voicepipe.ingress import api_keys
from voicepipe.ingress.api_keys import (
    OPERATOR,
    Caller,
    ClientSecrets,
    Tenants,
    account,
    is_key,
    key_of,
    may_scrape,
    token_of,
)
from voicepipe.ingress.api_keys import caller as who


def caller(tenant: str, size: int = 10) -> Caller:
    return Caller(Tenant(tenant), "front-desk", b'{"instructions":"%s"}' % (b"x" * size))


def test_each_tenant_has_its_own_room_for_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "KEPT", 20)
    now = [1000.0]
    secrets = ClientSecrets(lambda: now[0])
    mine, _ = secrets.make(caller("mine"), 600)
    for _ in range(20):
        secrets.make(caller("flood"), 60)
    with pytest.raises(TooManySecrets, match="flood has 20 ek_ keys"):
        secrets.make(caller("flood"), 60)
    assert secrets.find(mine).session == b'{"instructions":"xxxxxxxxxx"}'
    now[0] += 61
    again, _ = secrets.make(caller("flood"), 60)
    assert secrets.find(again).tenant.name == "flood" and secrets.find(mine)
    assert len(secrets._callers) == 2, "what has expired is forgotten"
    now[0] += 600
    with pytest.raises(Unauthorized):
        secrets.find(mine)


def test_keys_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "KEPT_BYTES", 10_000)
    secrets, made = ClientSecrets(), 0
    with pytest.raises(TooManySecrets, match="of 10000 bytes"):
        while made < 100:
            secrets.make(caller("flood", 1000), 60)
            made += 1
    assert made == 7


SHOP = Tenant("shop", ("front-desk",))


class Directory:
    """Reads its own tokens."""

    def __init__(self, **grant: Any) -> None:
        self.grant = Grant(id="call_1", tenant="acme", agents=("front-desk",), slots=3, **grant)
        self.spent: list[bool] = []

    def read(self, token: str, spent: bool) -> Grant:
        self.spent.append(spent)
        return self.grant


def holds(key: str | None, tokens: Any = None, known: ClientSecrets | None = None, spent: bool = False) -> Caller:
    return who(FakePop(keys={"sk-shop": SHOP}), tokens, known or ClientSecrets(), key, spent)


def test_a_tenants_own_key_an_ek_key_and_a_token() -> None:
    assert holds("sk-shop") == Caller(SHOP)
    known = ClientSecrets()
    made, _ = known.make(Caller(SHOP, "front-desk", b"{}", ("voice",)), 60)
    found = holds(made, known=known)
    assert (found.tenant, found.agent, found.locked, found.secret) == (SHOP, "front-desk", ("voice",), made)
    directory = Directory()
    found = holds("vp_token", directory, spent=True)
    assert found.tenant == Tenant("acme", ("front-desk",), 3) and found.grant is directory.grant
    assert found.secret == "vp_token" and directory.spent == [True]


def test_a_token_of_one_ek_key_is_known_by_it_and_one_that_begins_no_call_by_nothing() -> None:
    assert holds("vp_token", Directory(holder="ek_1")).secret == "ek_1"
    assert holds("vp_token", Directory(begins=False)).secret == ""


@pytest.mark.parametrize("key", ["ek_unknown", "vp_token", "sk-other", None])
def test_what_opens_no_door(key: str | None) -> None:
    with pytest.raises(Unauthorized):
        holds(key)


def test_a_key_expires_at_its_second() -> None:
    now = 1000.5
    made = ClientSecrets(lambda: now)
    key, until = made.make(Caller(SHOP), 10)
    assert until == 1010 and key.startswith("ek_") and len(key) > 30
    now = 1009.9
    assert made.find(key).tenant is SHOP
    now = 1010.0
    with pytest.raises(Unauthorized, match="unknown or has expired"):
        made.find(key)


@pytest.mark.parametrize(
    ("header", "protocols", "key"),
    [
        ("Bearer sk-1", [], "sk-1"),
        ("bearer  sk-1 ", ["realtime"], "sk-1"),
        ("Bearer sk-1", ["openai-insecure-api-key.sk-2"], "sk-1"),
        (None, ["realtime", "openai-insecure-api-key.sk-2"], "sk-2"),
        ("Basic sk-1", [], None),
        ("Bearer ", [], None),
        ("sk-1", [], None),
        (None, ["realtime"], None),
    ],
)
def test_where_a_key_may_stand(header: str | None, protocols: list[str], key: str | None) -> None:
    assert key_of(header, protocols) == key


def test_in_an_address_only_a_token_may_stand() -> None:
    assert token_of({"token": "vp_x.y"}) == "vp_x.y"
    for other in ({"token": "sk-1"}, {"token": "ek_1"}, {"key": "vp_x"}, {}):
        assert token_of(other) is None


def test_those_who_may_see_everything_pay_on_an_account_of_their_own() -> None:
    assert account(None).tenant.name == OPERATOR != account("shop").tenant.name == "shop"


def test_a_secret_shows_in_no_log() -> None:
    assert "ek_1" not in repr(Caller(SHOP, secret="ek_1"))


# --- tenants

ACME = TenantConfig(name="acme", key_env="A", agents=("front-desk",), slots=3)
OWNERS = {"k-acme": ACME, "k-näher": TenantConfig(name="clinic", key_env="B")}


def test_a_key_is_its_owners() -> None:
    tenants = Tenants(OWNERS, "PoP")
    assert tenants.tenant("k-acme") == Tenant("acme", ("front-desk",), 3)
    assert tenants.tenant("k-näher").name == "clinic"
    assert tenants


@pytest.mark.parametrize("key", ["k-acm", "k-acme ", "K-ACME", "acme", "k-naher"])
def test_a_key_that_is_not_known_says_whom_to_ask(key: str) -> None:
    with pytest.raises(Unauthorized, match="This key is not known here: ask whoever runs this PoP for one"):
        Tenants(OWNERS, "PoP").tenant(key)


@pytest.mark.parametrize("key", [None, ""])
def test_who_brings_none_is_told_how_to_send_one(key: str | None) -> None:
    with pytest.raises(Unauthorized, match="This directory wants a key: send it as `Authorization: Bearer KEY`"):
        Tenants(OWNERS, "directory").tenant(key)


def test_where_there_are_no_keys_everybody_is_one_tenant() -> None:
    tenants = Tenants({}, "PoP")
    assert not tenants
    for key in (None, "", "k-acme"):
        assert tenants.tenant(key) == Tenant(NO_TENANT)
    assert tenants.named("acme") == Tenant(NO_TENANT)


def test_keys_are_changed_while_it_runs() -> None:
    tenants = Tenants(OWNERS, "PoP")
    tenants.become({"k-new": ACME})
    assert tenants.tenant("k-new").name == "acme"
    with pytest.raises(Unauthorized):
        tenants.tenant("k-acme")


def test_the_owner_of_an_ek_key_may_be_gone() -> None:
    tenants = Tenants(OWNERS, "PoP")
    assert tenants.named("acme").slots == 3
    with pytest.raises(Unauthorized, match="The owner of this key is not known to this PoP any more"):
        tenants.named("harbour")


@pytest.mark.parametrize(
    ("known", "key", "same"),
    [("a", "a", True), ("a", "b", False), ("", "", True), ("ä", "ä", True), ("a", "aa", False)],
)
def test_keys_are_compared(known: str, key: str, same: bool) -> None:
    assert is_key(known, key) is same


@pytest.mark.parametrize(
    ("owners", "keys", "key", "may"),
    [
        ({}, OperatorKeys("", ""), None, True),
        ({}, OperatorKeys("", ""), "k-any", False),
        ({}, OperatorKeys("", "k-metrics"), None, False),
        ({}, OperatorKeys("", "k-metrics"), "k-metrics", True),
        ({}, OperatorKeys("k-operator", ""), "k-operator", True),
        (OWNERS, OperatorKeys("", ""), None, False),
        (OWNERS, OperatorKeys("k-operator", "k-metrics"), "k-acme", False),
        (OWNERS, OperatorKeys("k-operator", "k-metrics"), "", False),
    ],
)
def test_who_may_read_the_metrics(
    owners: dict[str, TenantConfig], keys: OperatorKeys, key: str | None, may: bool
) -> None:
    assert may_scrape(Tenants(owners, "PoP"), keys, key) is may


def test_an_ek_key_goes_with_its_tenant() -> None:
    tenants = {"shop"}
    secrets = ClientSecrets(knows=tenants.__contains__)
    key, _ = secrets.make(caller("shop"), 600)
    assert secrets.find(key).tenant.name == "shop"
    tenants.clear()
    with pytest.raises(Unauthorized, match="not known to this PoP any more"):
        secrets.find(key)
