"""What operators push to a whole fleet, as each kind of host takes it."""

from voicepipe.agent import Hooks
from voicepipe.config import Config, TenantConfig
from voicepipe.config.directory_config import CanaryConfig, DirectoryConfig, DirectoryRoute, DirectoryTenant
from voicepipe.config.fleet_rules import FleetRules, FleetTenant

TOLD = Hooks(after_call="https://crm.example/calls", secret_env="CRM")
OWN = TenantConfig(name="own", key_env="OWN")
RULES = FleetRules(
    tenants=(FleetTenant(name="clinic", key_env="CLINIC", zone="eu", hooks=TOLD),),
    routes=(DirectoryRoute(called="+49*", tenant="clinic", region="fra"),),
    canaries=(CanaryConfig(share=0.1, version="2"),),
)


def test_a_pop_takes_tenants_with_who_is_told_of_their_calls() -> None:
    config = RULES.at_pop(Config(tenants=(OWN,)))
    assert config.tenants == (TenantConfig(name="clinic", key_env="CLINIC", hooks=TOLD),)
    assert config.routes == RULES.routes


def test_a_directory_takes_tenants_routes_and_canaries() -> None:
    config = RULES.at_directory(DirectoryConfig())
    assert (config.tenants, config.routes, config.canaries) == (RULES.tenants, RULES.routes, RULES.canaries)


def test_a_host_keeps_what_is_not_said() -> None:
    at_pop, at_directory = (
        Config(tenants=(OWN,)),
        DirectoryConfig(tenants=(DirectoryTenant(name="own", key_env="OWN"),)),
    )
    assert FleetRules().at_pop(at_pop) == at_pop
    assert FleetRules().at_directory(at_directory) == at_directory


def test_an_empty_table_says_that_there_are_none() -> None:
    config = Config(tenants=(OWN,), routes=(DirectoryRoute(tenant="own"),))
    assert FleetRules(routes=()).at_pop(config) == Config(tenants=(OWN,))
