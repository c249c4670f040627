"""A directory's configuration, its command, and what operators push to a whole fleet, as each kind of host takes it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from msgspec.structs import replace

from tests.directory.keys import make_keys, needs_openssl
from tests.directory.nats_server import nats_server, needs_nats
from tests.support.paths import ROOT
from voicepipe.agent import Hooks
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, TenantConfig, load_directory, load_rules
from voicepipe.config.directory_config import (
    CanaryConfig,
    DirectoryConfig,
    DirectoryRoute,
    DirectoryTenant,
    DirectoryTrunk,
    FleetRules,
    FleetTenant,
)
from voicepipe.config.fleet_config import BusConfig
from voicepipe.config.phone_config import KnownUser, TelephonyConfig
from voicepipe.directory.server.run import check

SHIPPED, FLEET = (ROOT / "configs" / name for name in ("directory.toml", "fleet.toml"))
TOLD = Hooks(after_call="https://crm.example/calls", secret_env="CRM")
OWN = TenantConfig(name="own", key_env="OWN")
RULES = FleetRules(
    tenants=(FleetTenant(name="clinic", key_env="CLINIC", zone="eu", hooks=TOLD),),
    routes=(DirectoryRoute(called="+49*", tenant="clinic", region="fra"),),
    canaries=(CanaryConfig(share=0.1, version="2"),),
)


def test_the_shipped_file_has_every_key_with_its_default() -> None:
    written = tomllib.loads(SHIPPED.read_text())
    assert written["bus"].pop("servers") == ["nats://127.0.0.1:4222"]
    built_in: dict[str, Any] = msgspec.to_builtins(DirectoryConfig())
    assert [built_in.pop(tables) for tables in ("tenants", "routes", "canaries")] == [(), (), ()]
    assert (built_in["sip"].pop("trunks"), built_in["sip"].pop("users")) == ((), ())
    assert built_in["bus"].pop("servers") == ()
    assert written == {table: {key: list(value) if isinstance(value, tuple) else value for key, value in keys.items()}
                       for table, keys in built_in.items()}  # fmt: skip


def commented(file: Path) -> dict[str, Any]:
    """The tables that stand there as comments."""
    return tomllib.loads("\n".join(re.findall(r"^# (\[\[.+|[a-z_]+ = .+)$", file.read_text(), re.MULTILINE)))


def test_what_is_pushed_to_a_fleet_has_every_key_as_a_comment() -> None:
    assert load_rules(FLEET) == FleetRules()
    tables = commented(FLEET)
    kinds = {"tenants": FleetTenant, "routes": DirectoryRoute, "canaries": CanaryConfig}
    assert tables.keys() == kinds.keys() == set(FleetRules.__struct_fields__)
    for name, kind in kinds.items():
        [table] = tables[name]
        assert set(table) == set(kind.__struct_fields__)
        if name == "canaries":
            del table["pop"]
        msgspec.convert(table, kind)


def test_the_commented_tables_have_every_key() -> None:
    tables = commented(SHIPPED)
    for [table], kind in (
        (tables["tenants"], DirectoryTenant),
        (tables["routes"], DirectoryRoute),
        (tables["sip"]["trunks"], DirectoryTrunk),
        (tables["sip"]["users"], KnownUser),
        (tables["canaries"], CanaryConfig),
    ):
        assert set(table) == set(kind.__struct_fields__)
        msgspec.convert(table, kind)


@pytest.mark.parametrize(("text", "said"), [
    ('[directory]\nplace = [91, 0]', "give latitude and longitude"),
    ('[bus]\nservers = ["localhost:4222"]', "give one such as nats://127.0.0.1:4222"),
    ('[bus]\nuser = "fra"', "go together"),
    ('[directory]\nkey = "gone.pem"', "there is no"),
    ('[directroy]\n', "directroy"),
    ('[sip]\nport = 5060\n[[tenants]]\nname = "a"\nkey_env = "A"\n[[tenants]]\nname = "b"\nkey_env = "B"\n',
     "say whose phone calls"),
    ('[twilio]\nauth_token_env = "T"', "telephony.public_url"),
    ('[[canaries]]\nshare = 0.1', "either version or pop"),
    ('[[canaries]]\nshare = 10\nversion = "2"', "share"),
])  # fmt: skip
def test_what_is_wrong_is_told_with_what_to_do(tmp_path: Path, text: str, said: str) -> None:
    (file := tmp_path / "directory.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_directory(file)


def command(file: Path) -> list[str]:
    return [sys.executable, "-m", "voicepipe", "directory", "--config", str(file), "--port", "0"]


@pytest.mark.parametrize(("text", "said"), [
    ("", "nats-server -a 127.0.0.1"),
    ('[bus]\nservers = ["nats://127.0.0.1:9"]', "openssl genpkey"),
    ('[bus]\nservers = ["nats://127.0.0.1:9"]\n[http]\nhost = "0.0.0.0"', "no tenant has a key"),
])  # fmt: skip
def test_a_directory_that_cannot_start_says_what_is_missing(tmp_path: Path, text: str, said: str) -> None:
    (file := tmp_path / "directory.toml").write_text(text)
    ended = subprocess.run(command(file), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


@needs_openssl
@needs_nats
def test_the_command_answers_and_a_signal_ends_it(tmp_path: Path) -> None:
    make_keys(tmp_path)
    with nats_server(tmp_path) as bus:
        (file := tmp_path / "directory.toml").write_text(
            f'[directory]\nkey = "directory.pem"\n[bus]\nservers = ["{bus.url}"]\n'
        )
        with subprocess.Popen(command(file), stdout=subprocess.PIPE, text=True) as child:
            try:
                assert child.stdout
                said = child.stdout.readline()
                url = said.split(" answers at ")[1].split(";")[0]
                assert httpx.get(f"{url}/readyz").status_code == 503
                answer = httpx.post(f"{url}/v1/calls")
                assert answer.json()["error"]["code"] == "no_pop"
            finally:
                child.terminate()
            assert child.wait(60) == 0


def test_webhooks_of_providers_come_encrypted_unless_from_this_machine() -> None:
    config = DirectoryConfig(bus=BusConfig(servers=("nats://127.0.0.1:4222",)))
    for url in ("https://calls.example.com", "http://127.0.0.1:8080", ""):
        check(replace(config, telephony=TelephonyConfig(public_url=url)))
    with pytest.raises(ConfigError, match="telephony.public_url = .* in the clear"):
        check(replace(config, telephony=TelephonyConfig(public_url="http://calls.example.com")))


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
