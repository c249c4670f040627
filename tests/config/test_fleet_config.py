"""Tables that concern several PoPs: what they cannot say."""

import re
from typing import Any

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.base.ranges import Section
from voicepipe.config import toml_file
from voicepipe.config.fleet_config import BusConfig, FleetConfig

NATS = "nats://127.0.0.1:4222"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"edition": 3}, "fleet.edition: editions are kept in a folder; say which one (editions)"),
        ({"url": "fra1.example.com"}, "fleet.url: 'fra1.example.com' is none of a PoP; give one without a path"),
        ({"url": "https://fra1.example.com/v1"}, "fleet.url: 'https://fra1.example.com/v1' is none of a PoP"),
        ({"url": "https://fra1.example.com/?a=1"}, "fleet.url: 'https://fra1.example.com/?a=1' is none of a PoP"),
        ({"place": [50.1, 181]}, "fleet.place: "),
        ({"weight": 0}, "fleet.weight: cannot be 0; allowed: a number, above 0"),
        ({"kinds": ["sip"]}, 'fleet.kinds[0]: cannot be "sip"; allowed: "webrtc", "websocket"'),
    ],
)
def test_what_a_pop_cannot_say_of_itself(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=f"^pop.toml: {re.escape(said)}"):
        toml_file.convert({"fleet": table}, _Fleet, "pop.toml")


class _Fleet(Section, frozen=True):
    fleet: FleetConfig = FleetConfig()


@pytest.mark.parametrize("url", ["https://fra1.example.com", "http://10.0.0.1:8080/", ""])
def test_where_callers_reach_a_pop(url: str) -> None:
    assert FleetConfig(url=url).url == url


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"servers": ("localhost:4222",)}, "'localhost:4222' is none; give one such as nats://127.0.0.1:4222"),
        ({"servers": (NATS, "nats://")}, "'nats://' is none"),
        ({"servers": ("http://h:4222",)}, "'http://h:4222' is none"),
        ({"user": "fra"}, "user and password_env go together"),
        ({"password_env": "A"}, "user and password_env go together"),
        ({"user": "fra", "password_env": "A", "credentials": "a.creds"}, "leave one of them out"),
    ],
)
def test_what_a_bus_cannot_be(table: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        BusConfig(**table)


@pytest.mark.parametrize("server", [NATS, "tls://nats.example.com:4222", "ws://10.0.0.1", "wss://nats.example.com"])
def test_servers_of_a_bus(server: str) -> None:
    assert BusConfig(servers=(server,), user="fra", password_env="A").servers == (server,)
