"""Which agent answers a phone call."""

import pytest

from voicepipe.call_api import Tenant
from voicepipe.config import Config, TenantConfig
from voicepipe.config.phone_config import RouteConfig
from voicepipe.ingress.phone import find, plain, tenant_of

ROUTES = (
    RouteConfig(called="+49 30 123-45", agent="reception"),
    RouteConfig(called="+4930*", kind="twilio", agent="berlin"),
    RouteConfig(called="front*", domain="Clinic.example", agent="clinic", tenant="clinic"),
    RouteConfig(trunk="office", agent="office"),
    RouteConfig(called="2[0-9]?", kind="sip", agent="patterns"),
)


@pytest.mark.parametrize(
    ("call", "agent"),
    [
        ({"kind": "telnyx", "called": "+493012345"}, "reception"),
        ({"kind": "sip", "called": "sip:+493012345@pop.example;user=phone"}, "reception"),
        ({"kind": "twilio", "called": "+4930 99"}, "berlin"),
        ({"kind": "telnyx", "called": "+4930 99"}, None),
        ({"kind": "sip", "called": "Front-Desk", "domain": "clinic.EXAMPLE"}, "clinic"),
        ({"kind": "sip", "called": "front-desk", "domain": "other.example"}, None),
        ({"kind": "sip", "called": "200", "trunk": "office"}, "office"),
        ({"kind": "sip", "called": "200", "trunk": "attic"}, None),
        ({"kind": "sip", "called": "20x"}, None),
        ({"kind": "sip", "called": "2[0-9]?"}, "patterns"),
    ],
)
def test_the_first_route_that_fits(call: dict[str, str], agent: str | None) -> None:
    route = find(ROUTES, **call)  # type: ignore[arg-type]
    assert (route.agent if route else None) == agent


def test_numbers_are_compared_without_what_people_write_into_them() -> None:
    assert plain("tel:+49 (30) 12-34") == plain("sip:+49301234@host:5060") == "+49301234"


def test_whose_call_it_is() -> None:
    clinic = TenantConfig(name="clinic", key_env="CLINIC_KEY", agents=("clinic",), slots=2)
    shop = TenantConfig(name="shop", key_env="SHOP_KEY")
    assert tenant_of(RouteConfig(), Config()) == Tenant("local")
    assert tenant_of(RouteConfig(), Config(), "acme") == Tenant("acme"), "a directory has placed it for them"
    assert tenant_of(RouteConfig(), Config(tenants=(clinic,)), "acme").name == "clinic"
    assert tenant_of(RouteConfig(), Config(tenants=(clinic,))) == Tenant("clinic", ("clinic",), 2)
    assert tenant_of(RouteConfig(tenant="shop"), Config(tenants=(clinic, shop))) == Tenant("shop")
