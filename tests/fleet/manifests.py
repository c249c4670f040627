"""Configurations of the processes of a fleet, as people would write them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.fleet.network import API_PORT, BUS_PORT, PORT, ROUTE_PORT, SIP_PORT, Host
from tests.ingress.telephony.telnyx_provider import PUBLIC, SECRET
from tests.ingress.telephony.twilio_provider import TOKEN

PLACES = {"eu": (50.1, 8.7), "us": (39.0, -77.5), "ap": (35.7, 139.7)}
"""Regions; each has the residency zone of its name."""
ACME, CLINIC, OPERATOR = "acme-key-of-the-rig", "clinic-key-of-the-rig", "operator-key-of-the-rig"
"""Keys: of a tenant whose calls may go anywhere, of one whose calls stay in zone "eu", of the operator."""
PROVIDERS = {"TWILIO_TOKEN": TOKEN, "TELNYX_KEY": SECRET}
ACME_NEXT = "next-key-of-acme"
"""With which it replaces its own."""
SECRETS = {"ACME_KEY": ACME, "ACME_NEXT_KEY": ACME_NEXT, "CLINIC_KEY": CLINIC, "OPERATOR_KEY": OPERATOR, **PROVIDERS}

DIRECTORY_TOML = """
[directory]
id = "{name}"
key = "{folder}/{key}.pem"
keys = {keys}
place = {place}
editions = "{folder}/editions/{name}"

[http]
host = "{address}"
port = {port}
operator_key_env = "OPERATOR_KEY"

[sip]
port = {sip_port}
host = "{address}"

[[sip.trunks]]
name = "carrier"
addresses = ["0.0.0.0/0"]

[telephony]
public_url = "{public}"

[twilio]
auth_token_env = "TWILIO_TOKEN"

[telnyx]
public_key = "{telnyx_key}"
api_key_env = "TELNYX_KEY"
api_url = "{telnyx}"

[[routes]]
tenant = "acme"

[bus]
servers = {servers}
user = "{user}"
password_file = "{folder}/passwords/{user}"
{acme}
[[tenants]]
name = "clinic"
key_env = "CLINIC_KEY"
zone = "eu"
"""

TENANT_TOML = """
[[tenants]]
name = "acme"
key_env = "{variable}"
"""

POP_TOML = """
[pop]
id = "{name}"
version = "{version}"
region = "{region}"
slots = {slots}
budget_ms = 600000
drain_ms = {drain_ms}
agents = "{folder}/agents"

[http]
host = "{address}"
port = {port}

[fleet]
keys = {keys}
url = "http://{address}:{port}"
place = {place}
zone = "{region}"
editions = "{folder}/editions/{name}"

[sip]
port = {sip_port}
host = "{address}"
silent_ms = 600000

[[sip.trunks]]
name = "carrier"
addresses = ["0.0.0.0/0"]

[twilio]
auth_token_env = "TWILIO_TOKEN"

[[routes]]
kind = "twilio"
agent = "greets"

[[routes]]
kind = "telnyx"
agent = "greets"

[[routes]]

[bus]
servers = {servers}
user = "{user}"
password_file = "{folder}/passwords/{user}"
"""
TELNYX_TOML = """
[telephony]
public_url = "http://{address}:{port}"

[telnyx]
public_key = "{key}"
api_key_env = "TELNYX_KEY"
api_url = "{api}"
"""
"""Of a PoP on loopback: elsewhere its public address has to begin with https."""
ENGINES_TOML = """
[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""

NATS_CONF = """
server_name: {name}
listen: "{address}:{port}"
ping_interval: "1s"
ping_max: 2
lame_duck_duration: "30s"
lame_duck_grace_period: "2s"
cluster {{
  name: fleet
  listen: "{address}:{route_port}"
  advertise: "127.0.0.1:1"
  no_advertise: true
  routes: {routes}
}}
authorization {{
  users = [
{users}
  ]
}}
"""
"""A cut way is noticed by pings, in three seconds and not in four minutes. Servers and clients know each other from
their configurations alone, so that none finds a way around the one that it was given."""
USER = """    {{user: "{user}", password: "{password}",
     permissions: {{publish: "vp.pop.{name}.>",
                   subscribe: ["vp.pop.>", "vp.brief.{name}", "vp.cmd.{name}", "vp.fleet.>"]}}}}"""
DIRECTORY_USER = """    {{user: "{user}", password: "{password}",
     permissions: {{publish: ["vp.asg.>", "vp.brief.>", "vp.cmd.>", "vp.ek.>", "vp.claim", "vp.fleet.>"],
                   subscribe: ["vp.pop.>", "vp.asg.>", "vp.ek.>", "vp.claim", "vp.fleet.>"]}}}}"""
DIRECTORY = "directory"
"""The user of the bus that all directories are, and the name of the files with their key."""
AGENTS = {"front-desk": "", "greets": "Yes?"}
"""And what they greet with. A call that says nothing costs next to nothing; one by a provider begins with sound."""


def password(name: str) -> str:
    """Of a user of the bus."""
    return f"{name}-bus-password"


def write_engines(folder: Path) -> Path:
    """The configuration that all PoPs share, and their agent."""
    (folder / "agents").mkdir()
    for name, greeting in AGENTS.items():
        (folder / "agents" / f"{name}.toml").write_text(f'name = "{name}"\ngreeting = "{greeting}"\n')
    return _written(folder / "engines.toml", ENGINES_TOML)


class PopSettings(NamedTuple):
    """What of a PoP's manifest changes while the fleet runs."""

    version: str = "1"
    keys: tuple[str, ...] = (DIRECTORY,)
    """Names of the files with directories' public keys."""
    user: str = ""
    """Of the bus; empty: its name."""


class DirectorySettings(NamedTuple):
    """The same of a directory's file."""

    key: str = DIRECTORY
    """Name of the file with its private key."""
    keys: tuple[str, ...] = ()
    """And of those with others' public ones."""
    acme: tuple[str, ...] = ("ACME_KEY",)
    """Variables with the keys of the tenant acme."""
    user: str = DIRECTORY
    """Of the bus."""


class Hosts(NamedTuple):
    """What a host is told of others."""

    servers: Sequence[str]
    """Of NATS."""
    telnyx: Host


def write_pop(folder: Path, host: Host, others: Hosts, slots: int, drain_s: float, settings: PopSettings) -> Path:
    """The path of its manifest."""
    text = POP_TOML.format(
        name=host.name, region=host.region, slots=slots, drain_ms=round(1000 * drain_s), folder=folder,
        address=host.address, port=PORT, sip_port=SIP_PORT, place=list(PLACES[host.region]),
        servers=_list(others.servers), version=settings.version, keys=_public(folder, settings.keys),
        user=settings.user or host.name,
    )  # fmt: skip
    if host.address.startswith("127."):
        text += TELNYX_TOML.format(address=host.address, port=PORT, key=PUBLIC, api=_api(others.telnyx))
    return _written(folder / f"{host.name}.toml", text)


def write_directory(folder: Path, host: Host, others: Hosts, settings: DirectorySettings) -> Path:
    acme = "".join(TENANT_TOML.format(variable=variable) for variable in settings.acme)
    text = DIRECTORY_TOML.format(
        name=host.name, folder=folder, place=list(PLACES[host.region]), address=host.address, port=PORT,
        sip_port=SIP_PORT, servers=_list(others.servers), telnyx_key=PUBLIC, telnyx=_api(others.telnyx),
        public=public_url(f"http://{host.address}:{PORT}"), key=settings.key, keys=_public(folder, settings.keys),
        acme=acme, user=settings.user,
    )  # fmt: skip
    return _written(folder / f"{host.name}.toml", text)


def write_nats(folder: Path, host: Host, routes: Sequence[str], users: Mapping[str, str]) -> Path:
    """`users`: whose each is: a PoP, for which it alone may speak, or DIRECTORY. Their passwords are written, too."""
    (folder / "passwords").mkdir(exist_ok=True)
    for user in users:
        _written(folder / "passwords" / user, password(user))
    text = NATS_CONF.format(
        name=host.name, address=host.address, port=BUS_PORT, route_port=ROUTE_PORT, routes=_list(routes),
        users="\n".join((DIRECTORY_USER if name == DIRECTORY else USER).format(
            user=user, name=name, password=password(user)) for user, name in users.items()),
    )  # fmt: skip
    return _written(folder / f"{host.name}.conf", text)


def public_url(url: str) -> str:
    """How providers say that they reach a directory, of which this is the address: elsewhere than on this machine only
    https is taken. They sign by it; the rig's ask without TLS all the same."""
    return url if url.startswith("http://127.") else url.replace("http://", "https://")


def _api(telnyx: Host) -> str:
    return f"http://{telnyx.address}:{API_PORT}"


def _public(folder: Path, names: Sequence[str]) -> str:
    return _list([f"{folder}/{name}.pub.pem" for name in names])


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def _list(items: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"
