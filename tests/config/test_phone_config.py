"""Tables that concern phones: who may call, and how providers are known."""

import re
from typing import Any

import pytest

from tests.config.told import problem
from voicepipe import config
from voicepipe.base.errors import ConfigError
from voicepipe.config.phone_config import SipConfig, TelnyxConfig, TwilioConfig, takes_phones

TRUNK = """[[sip.trunks]]
name = "carrier"
addresses = ["198.51.100.0/24"]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[telnyx]\npublic_key = "abc"\napi_key_env = "A"\n', "'abc' is no Ed25519 key in base64"),
        ('[telnyx]\npublic_key = "abc"\n', "public_key and api_key_env go together"),
        (TRUNK.replace(".0/24", ".7/24"), "give 198.51.100.0/24 for all of it, or 198.51.100.7"),
        (TRUNK.replace("198.51.100.0/24", "2001:db8::1"), "'2001:db8::1' is none; give an IPv4 address"),
    ],
)
def test_what_providers_are_known_by_is_checked(write: Any, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        config.load(write(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TRUNK + TRUNK, "sip.trunks: a name occurs twice; give each its own"),
        (2 * '[[sip.users]]\nname = "ann"\npassword_env = "A"\n', "sip.users: a name occurs twice"),
        ("[sip]\nfirst_port = 20000", "sip: first_port and last_port go together"),
        ('[sip]\nhost = "localhost"', "sip.host: 'localhost' is no IPv4 address"),
    ],
)
def test_what_a_table_of_telephones_cannot_say(write: Any, text: str, said: str) -> None:
    assert problem(write(text)).startswith(said)


def test_phone_calls_come_in_where_any_door_is_open() -> None:
    sip, twilio, telnyx = SipConfig(), TwilioConfig(), TelnyxConfig()
    assert not takes_phones(sip, twilio, telnyx)
    assert takes_phones(SipConfig(port=5060), twilio, telnyx)
    assert takes_phones(sip, TwilioConfig(auth_token_env="T"), telnyx)
    assert takes_phones(sip, twilio, TelnyxConfig(public_key="A" * 43 + "=", api_key_env="K"))
