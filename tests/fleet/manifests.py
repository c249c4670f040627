"""Configurations of the processes of a fleet, as people would write them."""

from collections.abc import Sequence
from pathlib import Path

from tests.fleet.network import API_PORT, BUS_PORT, PORT, ROUTE_PORT, SIP_PORT, Host
from tests.ingress.telephony.telnyx_provider import PUBLIC, SECRET
from tests.ingress.telephony.twilio_provider import TOKEN

PLACES = {"eu": (50.1, 8.7), "us": (39.0, -77.5), "ap": (35.7, 139.7)}
"""Regions; each has the residency zone of its name."""
ACME, CLINIC, OPERATOR = "acme-key-of-the-rig", "clinic-key-of-the-rig", "operator-key-of-the-rig"
"""Keys: of a tenant whose calls may go anywhere, of one whose calls stay in zone "eu", of the operator."""
PROVIDERS = {"TWILIO_TOKEN": TOKEN, "TELNYX_KEY": SECRET}
SECRETS = {"ACME_KEY": ACME, "CLINIC_KEY": CLINIC, "OPERATOR_KEY": OPERATOR, **PROVIDERS}

DIRECTORY_TOML = """
[directory]
id = "{name}"
key = "{folder}/directory.pem"
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
user = "directory"
password_env = "BUS_PASSWORD"

[[tenants]]
name = "acme"
key_env = "ACME_KEY"

[[tenants]]
name = "clinic"
key_env = "CLINIC_KEY"
zone = "eu"
"""

POP_TOML = """
[pop]
id = "{name}"
region = "{region}"
slots = {slots}
budget_ms = 600000
drain_ms = {drain_ms}
agents = "{folder}/agents"

[http]
host = "{address}"
port = {port}

[fleet]
keys = ["{folder}/directory.pub.pem"]
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
user = "{name}"
password_env = "BUS_PASSWORD"
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
cluster {{
  name: fleet
  listen: "{address}:{route_port}"
  advertise: "127.0.0.1:1"
  no_advertise: true
  routes: {routes}
}}
authorization {{
  users = [
    {{user: "directory", password: "{directory}",
     permissions: {{publish: ["vp.asg.>", "vp.brief.>", "vp.cmd.>", "vp.ek.>", "vp.claim", "vp.fleet.>"],
                   subscribe: ["vp.pop.>", "vp.asg.>", "vp.ek.>", "vp.claim", "vp.fleet.>"]}}}}
{users}
  ]
}}
"""
"""A cut way is noticed by pings, in three seconds and not in four minutes. Servers and clients know each other from
their configurations alone, so that none finds a way around the one that it was given."""
USER = """    {{user: "{name}", password: "{password}",
     permissions: {{publish: "vp.pop.{name}.>",
                   subscribe: ["vp.pop.>", "vp.brief.{name}", "vp.cmd.{name}", "vp.fleet.>"]}}}}"""
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


def write_pop(folder: Path, host: Host, servers: Sequence[str], telnyx: Host, slots: int, drain_s: float) -> Path:
    """The path of its manifest."""
    text = POP_TOML.format(
        name=host.name, region=host.region, slots=slots, drain_ms=round(1000 * drain_s), folder=folder,
        address=host.address, port=PORT, sip_port=SIP_PORT, place=list(PLACES[host.region]), servers=_list(servers),
    )  # fmt: skip
    if host.address.startswith("127."):
        text += TELNYX_TOML.format(address=host.address, port=PORT, key=PUBLIC, api=_api(telnyx))
    return _written(folder / f"{host.name}.toml", text)


def write_directory(folder: Path, host: Host, servers: Sequence[str], telnyx: Host) -> Path:
    text = DIRECTORY_TOML.format(name=host.name, folder=folder, place=list(PLACES[host.region]), address=host.address,
                                 port=PORT, sip_port=SIP_PORT, servers=_list(servers), telnyx_key=PUBLIC,
                                 telnyx=_api(telnyx), public=public_url(f"http://{host.address}:{PORT}"))  # fmt: skip
    return _written(folder / f"{host.name}.toml", text)


def write_nats(folder: Path, host: Host, routes: Sequence[str], pops: Sequence[str]) -> Path:
    """With a user for each PoP, who may speak for it alone."""
    users = "\n".join(USER.format(name=pop, password=password(pop)) for pop in pops)
    text = NATS_CONF.format(name=host.name, address=host.address, port=BUS_PORT, route_port=ROUTE_PORT,
                            routes=_list(routes), directory=password("directory"), users=users)  # fmt: skip
    return _written(folder / f"{host.name}.conf", text)


def public_url(url: str) -> str:
    """How providers say that they reach a directory, of which this is the address: elsewhere than on this machine only
    https is taken. They sign by it; the rig's ask without TLS all the same."""
    return url if url.startswith("http://127.") else url.replace("http://", "https://")


def _api(telnyx: Host) -> str:
    return f"http://{telnyx.address}:{API_PORT}"


def _written(file: Path, text: str) -> Path:
    file.write_text(text)
    return file


def _list(items: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"
