"""Whose key is whose."""

import pytest

from voicepipe.base.errors import Unauthorized
from voicepipe.call_api import NO_TENANT, Tenant
from voicepipe.config import TenantConfig
from voicepipe.config.credentials import OperatorKeys
from voicepipe.ingress.tenants import Tenants, is_key, may_scrape

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
