"""What is wrong with tables together that are right alone."""

from typing import Any

import pytest

from tests.config.told import problem
from voicepipe import config
from voicepipe.base.errors import ConfigError

TENANTS = """[[tenants]]
name = "a"
key_env = "A"
[[tenants]]
name = "b"
key_env = "B"
"""

TRUNK = """[[sip.trunks]]
name = "carrier"
addresses = ["198.51.100.0/24"]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TENANTS + '[[routes]]\ntenant = "c"\n', "routes[0].tenant: there is no tenant c; allowed: a, b"),
        (TENANTS + '[[routes]]\ncalled = "+49*"\n', "routes[0].tenant: say whose calls these are; allowed: a, b"),
        ('[[routes]]\ntenant = "c"\n', "routes[0].tenant: there is no tenant c; allowed: none"),
        ('[[routes]]\ntrunk = "carier"\n', "routes[0].trunk: there is no trunk carier; allowed: none"),
        (TRUNK + '[[routes]]\ntrunk = "carier"\n', "routes[0].trunk: there is no trunk carier; allowed: carrier"),
    ],
)
def test_a_route_names_tenants_and_trunks_that_are_there(write: Any, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load(file := write(text))
    assert str(caught.value).startswith(f"{file}: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[endpoint]\nyes_ms = 1400", "endpoint.yes_ms: cannot be 1400, more than endpoint.longest_ms"),
        ("[vad]\nstart_probability = 0.3", "vad.stop_probability: cannot be 0.35, more than vad.start_probability"),
        ("[turn]\ncut_ms = 100", "turn.pause_ms: cannot be 200, more than turn.cut_ms, which is 100"),
        ("[ladder]\nfallback_ms = 500", "ladder.acknowledge_ms: cannot be 700, more than ladder.fallback_ms"),
    ],
)
def test_times_that_contradict_each_other(write: Any, text: str, said: str) -> None:
    assert said in problem(write(text))
    assert config.load(write("[ladder]\nfallback_ms = 0")).ladder.fallback_ms == 0, "that rung is turned off"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TENANTS.replace('"B"', '"A"'), "tenants[1].key_env: A is the key of a already; name another variable"),
        (TENANTS + "[sip]\nport = 5060\n", "routes: say whose phone calls are in [[routes]]; tenants: a, b"),
        ('[records]\nlines = "-"\n', "records.lines: needs records of calls; say where they are kept"),
        ('[bus]\nservers = ["nats://127.0.0.1:4222"]\n', "fleet: directories will hear of this PoP by [bus]"),
        ('[fleet]\nsip = "203.0.113.5:5060"\n', "fleet.sip: telephones reach nothing there while sip.port = 0"),
        (f'[telnyx]\npublic_key = "{"A" * 43}="\napi_key_env = "K"\n', "telephony.public_url: Telnyx is told where"),
    ],
)
def test_tables_that_need_each_other(write: Any, text: str, said: str) -> None:
    assert problem(write(text)).startswith(said)


def test_a_tenant_with_two_keys_is_one_tenant(write: Any) -> None:
    """While its key is replaced: phone calls need no route that says whose they are, and nobody shares the PoP."""
    both = TENANTS.replace('"b"', '"a"')
    loaded = config.load(write(both + "[sip]\nport = 5060\n"))
    assert [tenant.name for tenant in loaded.tenants] == ["a", "a"] and not loaded.is_shared
    assert config.load(write(TENANTS)).is_shared
