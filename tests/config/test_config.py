"""Configuration files: what they may say, and what is said about the wrong ones."""

import re
import time
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.paths import ROOT
from voicepipe import config
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, TenantConfig, credentials, toml_file
from voicepipe.config.agent_store import open_agents
from voicepipe.config.engine_config import RecordedVoice
from voicepipe.config.fleet_config import BusConfig
from voicepipe.config.phone_config import RouteConfig, SipTrunk, SipUser
from voicepipe.config.pop_config import TracesConfig


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str, name: str = "my.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def problem(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value).removeprefix(f"{path}: ")


# --- the reference ----------------------------------------------------------------------------------------------


def test_default_toml_has_every_key_with_its_default() -> None:
    written = tomllib.loads((ROOT / "configs/default.toml").read_text())
    built_in = msgspec.to_builtins(Config())
    assert built_in.pop("tenants") == () == built_in.pop("routes")  # in the file as comments
    assert built_in["sip"].pop("trunks") == () == built_in["sip"].pop("users")
    assert flat(written) == flat(built_in)


def flat(tables: dict[str, Any]) -> dict[str, object]:
    """`table.key` -> value, a list for every sequence: what differs is readable in the test's output."""
    return {
        f"{table}.{key}": list(value) if isinstance(value, list | tuple) else value
        for table, keys in tables.items()
        for key, value in keys.items()
    }


def test_the_commented_tables_of_default_toml_have_every_key() -> None:
    text = (ROOT / "configs/default.toml").read_text()
    lines = re.findall(r"^# (\[\[?[\w.]+\]\]?|\w+ = .*)$", text, re.MULTILINE)
    tables = tomllib.loads("\n".join(lines))
    assert set(tables["tenants"][0]) == set(TenantConfig.__struct_fields__)
    assert set(tables["neutts"]["voices"]["anna"]) == set(RecordedVoice.__struct_fields__)
    assert set(tables["routes"][0]) == set(RouteConfig.__struct_fields__)
    assert set(tables["sip"]["trunks"][0]) == set(SipTrunk.__struct_fields__)
    assert set(tables["sip"]["users"][0]) == set(SipUser.__struct_fields__)
    written = config.parse(tables)
    assert written.tenants[0].key_env == "EXAMPLE_KEY" and written.routes[0].called == "+4930*"


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
        ('[telnyx]\npublic_key = "abc"\napi_key_env = "A"\n', "'abc' is no Ed25519 key in base64"),
        ('[telnyx]\npublic_key = "abc"\n', "public_key and api_key_env go together"),
        (TRUNK.replace(".0/24", ".7/24"), "give 198.51.100.0/24 for all of it, or 198.51.100.7"),
        (TRUNK.replace("198.51.100.0/24", "2001:db8::1"), "'2001:db8::1' is none; give an IPv4 address"),
    ],
)
def test_what_providers_are_known_by_is_checked(write: Any, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        config.load(write(text))


def test_the_routes_of_a_configuration_may_name_the_tenants_of_a_manifest(write: Any) -> None:
    loaded = config.load(write('[[routes]]\ntenant = "b"\n'), write(TENANTS, "pop.toml"))
    assert loaded.routes[0].tenant == "b"


OTHERS = {ROOT / "configs/directory.toml", ROOT / "configs/fleet.toml"}
"""Not a PoP's."""


@pytest.mark.parametrize("path", sorted({*(ROOT / "configs").glob("*.toml")} - OTHERS), ids=lambda path: path.name)
def test_shipped_configurations_load(path: Path) -> None:
    assert open_agents(config.load(path)).names()


@pytest.mark.parametrize("path", sorted((ROOT / "pops").glob("*.toml")), ids=lambda path: path.name)
def test_shipped_manifests_load(path: Path) -> None:
    assert config.load(None, path).pop.id == path.stem


# --- layers -----------------------------------------------------------------------------------------------------


def test_without_files_the_defaults_stand() -> None:
    loaded = config.load()
    assert loaded.pop.agents == str(ROOT / "configs" / "agents")
    assert msgspec.structs.replace(loaded, pop=Config().pop) == Config()


def test_a_manifest_overrides_the_file_key_by_key(write: Any) -> None:
    file = write("[pop]\nslots = 7\nregion = 'north'\n[turn]\nprepare_ms = 90")
    manifest = write("[pop]\nid = 'fra1'\nregion = 'south'", "fra1.toml")
    loaded = config.load(file, manifest)
    assert (loaded.pop.id, loaded.pop.region, loaded.pop.slots) == ("fra1", "south", 7)
    assert loaded.turn.prepare_ms == 90


def test_a_manifest_sets_only_what_differs_by_place(write: Any) -> None:
    manifest = write("[turn]\nprepare_ms = 90", "fra1.toml")
    with pytest.raises(ConfigError, match=r"fra1\.toml: turn: is not for a PoP's manifest; .*; allowed: pop, http"):
        config.load(None, manifest)


def test_paths_are_relative_to_their_file(write: Any, tmp_path: Path) -> None:
    for name in ("mine", "tls.pem", "tls.key"):
        (tmp_path / name).mkdir()
    file = write("[pop]\nagents = 'mine'\n[http]\ncert = 'tls.pem'\nkey = 'tls.key'")
    loaded = config.load(file)
    assert loaded.pop.agents == str(tmp_path / "mine")
    assert loaded.http.cert == str(tmp_path / "tls.pem")


def test_a_path_to_nowhere(write: Any, tmp_path: Path) -> None:
    assert f"pop.agents: there is no {tmp_path / 'mine'}" in problem(write("[pop]\nagents = 'mine'"))


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


# --- what is said about a wrong file ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[vllm]\ntokenizer = '/t'",
            "vllm.tokenizer: there is no such key; the engine's own arguments stand in vllm.args; ",
        ),
        (
            "[turn]\nprepare_ms = '3'",
            'turn.prepare_ms: cannot be "3"; allowed: a whole number, at least 0, at most 600000',
        ),
        (
            "[turn]\nprepare_ms = 1.5",
            "turn.prepare_ms: cannot be 1.5; allowed: a whole number, at least 0, at most 600000",
        ),
        (
            "[turn]\nprepare_ms = -1",
            "turn.prepare_ms: cannot be -1; allowed: a whole number, at least 0, at most 600000",
        ),
        ("[fleet]\nprice = 2", "fleet.price: there is no such key"),
        (
            "[pop]\nprice_per_hour = -1",
            "pop.price_per_hour: cannot be -1; allowed: a number, at least 0, at most 1000000000",
        ),
        ("[turn]\nprepare_ms = true", "turn.prepare_ms: cannot be true; allowed: a whole number"),
        ("[turn]\nduck_db = 3", "turn.duck_db: cannot be 3; allowed: a number, at least -96, at most 0"),
        ("[vad]\nstart_probability = 1", "vad.start_probability: cannot be 1; allowed: a number, above 0, below 1"),
        ("[engines]\nasr = 'siri'", 'engines.asr: cannot be "siri"; allowed: "nemotron", "scripted", "whisper"'),
        ("[pop]\nid = 'A b'", 'pop.id: cannot be "A b"; allowed: lower-case letters, digits, - and _'),
        ("[http]\norigins = ['a', 2]", "http.origins[1]: cannot be 2; allowed: text"),
        ("[http]\ncert = 'a'", "http: cert and key go together"),
        ("pop = 3", "pop: cannot be 3; allowed: a table with the keys id, region,"),
        ("[[tenants]]\nname = 'a'", "tenants[0].key_env: is missing; every entry of tenants needs it"),
        (
            "[[tenants]]\nname = 'a'\nkey_env = 'A'\nslots = 0",
            "tenants[0].slots: cannot be 0; allowed: a whole number, at least 1",
        ),
        ("[turn", "is not TOML: "),
    ],
)
def test_problems_name_the_key_and_what_is_allowed(write: Any, text: str, said: str) -> None:
    assert problem(write(text)).startswith(said)


def test_all_problems_of_a_file_are_told_at_once(write: Any) -> None:
    file = write(
        "[pop]\nslots = -1\nspeed = 1\n[http]\nport = 70000\n[[tenants]]\n[[tenants]]\nname = 3\nkey_env = 'B'"
    )
    keys = {line.removeprefix(f"{file}: ").partition(": ")[0] for line in (f"{file}: " + problem(file)).splitlines()}
    assert {"pop.slots", "pop.speed", "http.port", "tenants[0].name"} <= keys


def told(file: Path) -> list[str]:
    """The keys that are told as wrong, in order."""
    return [line.removeprefix(f"{file}: ").partition(": ")[0] for line in f"{file}: {problem(file)}".splitlines()]


def test_every_problem_is_told_with_its_own_index(write: Any) -> None:
    """What is wrong is taken out, so that more can be found, and the rest of a list moves up."""
    tenant = '[[tenants]]\nname = "a"\nkey_env = "{}"\n'
    file = write("".join(tenant.format(name) for name in ("a-b", "c-d", "GOOD", "e-f")))
    assert told(file) == ["tenants[0].key_env", "tenants[1].key_env", "tenants[3].key_env"]
    file = write("[http]\norigins = [1, 'a', 2, 3]")
    assert told(file) == ["http.origins[0]", "http.origins[2]", "http.origins[3]"]
    trunk = '[[sip.trunks]]\nname = "{}"\naddresses = {}\n'
    file = write(trunk.format("A b", "['192.0.2.1']") + trunk.format("b", "[1, '192.0.2.1', 2]") + "[[tenants]]\n")
    assert told(file) == [
        "sip.trunks[0].name", "sip.trunks[1].addresses[0]", "sip.trunks[1].addresses[2]", "tenants[0].name",
    ]  # fmt: skip


def test_files_that_cannot_be_read(write: Any, tmp_path: Path) -> None:
    assert "No such file" in problem(tmp_path / "none.toml")
    assert "directory" in problem(tmp_path)
    file = tmp_path / "latin.toml"
    file.write_bytes(b"# \xe9")
    assert "not UTF-8" in problem(file)


# --- keys -------------------------------------------------------------------------------------------------------

A = TenantConfig(name="a", key_env="VOICEPIPE_TEST_A")
B = TenantConfig(name="b", key_env="VOICEPIPE_TEST_B")


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPIPE_TEST_A", "one\n")
    monkeypatch.setenv("VOICEPIPE_TEST_B", "two")
    assert credentials.keys(Config(tenants=(A, B))) == {"one": A, "two": B}
    assert credentials.keys(Config()) == {}


def test_a_key_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VOICEPIPE_TEST_A", raising=False)
    with pytest.raises(ConfigError, match="set the environment variable VOICEPIPE_TEST_A"):
        credentials.keys(Config(tenants=(A,)))


def test_two_tenants_with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICEPIPE_TEST_A", "same")
    monkeypatch.setenv("VOICEPIPE_TEST_B", "same")
    with pytest.raises(ConfigError, match="a and b have the same key"):
        credentials.keys(Config(tenants=(A, B)))


def test_the_operators_key_is_one_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    http = config.HttpConfig(operator_key_env="VOICEPIPE_TEST_O")
    monkeypatch.setenv("VOICEPIPE_TEST_A", "one")
    monkeypatch.delenv("VOICEPIPE_TEST_O", raising=False)
    assert credentials.operator_keys(Config(tenants=(A,))) == ("", "")
    with pytest.raises(ConfigError, match="set the environment variable VOICEPIPE_TEST_O"):
        credentials.operator_keys(Config(http=http, tenants=(A,)))
    monkeypatch.setenv("VOICEPIPE_TEST_O", "one")
    with pytest.raises(ConfigError, match="give the operator one of its own"):
        credentials.operator_keys(Config(http=http, tenants=(A,)))
    monkeypatch.setenv("VOICEPIPE_TEST_O", "three\n")
    assert credentials.operator_keys(Config(http=http, tenants=(A,))).operator == "three"


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("[openai]\napi_key_env = 'VOICEPIPE_TEST_A'", "openai.api_key_env"),  # llm = "auto" may use it
        ("[openai]\napi_key_env = 'VOICEPIPE_TEST_A'\n[engines]\nllm = 'openai'", "openai.api_key_env"),
        ("[openai]\napi_key_env = 'VOICEPIPE_TEST_A'\n[engines]\nllm = 'frontdesk'", ""),
        ("[bus]\nuser = 'a'\npassword_env = 'VOICEPIPE_TEST_A'", ""),
        ("[twilio]\nauth_token_env = 'VOICEPIPE_TEST_A'", "twilio.auth_token_env"),
        ("[[sip.users]]\nname = 'a'\npassword_env = 'VOICEPIPE_TEST_A'", "sip.users[0].password_env"),
    ],
)
def test_only_secrets_that_are_used_are_asked_for(
    write: Any, monkeypatch: pytest.MonkeyPatch, text: str, missing: str
) -> None:
    monkeypatch.delenv("VOICEPIPE_TEST_A", raising=False)
    settings = config.load(write(text))
    assert credentials.missing_secrets(settings) == ({"VOICEPIPE_TEST_A": missing} if missing else {})
    if missing:
        with pytest.raises(ConfigError, match=f"^{re.escape(missing)}: set the environment variable VOICEPIPE_TEST_A"):
            credentials.check(settings)
    monkeypatch.setenv("VOICEPIPE_TEST_A", "s3cret")
    credentials.check(settings)


def test_a_bus_asks_for_its_password(monkeypatch: pytest.MonkeyPatch) -> None:
    bus = BusConfig(servers=("nats://127.0.0.1:4222",), user="a", password_env="VOICEPIPE_TEST_A")
    monkeypatch.delenv("VOICEPIPE_TEST_A", raising=False)
    with pytest.raises(ConfigError, match="bus.password_env: set the environment variable VOICEPIPE_TEST_A"):
        credentials.check(Config(bus=bus))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('addresses = ["my.host.example"]', "addresses: 'my.host.example' is no IPv4 address"),
        ('addresses = ["0.0.0.0"]', "addresses: '0.0.0.0' is no IPv4 address of one host"),
        ('public_address = "x"', "public_address: 'x' is no IPv4 address"),
        ("first_port = 5", "first_port and last_port go together"),
        ("first_port = 9\nlast_port = 5", "the lower one first"),
        ('turn_urls = ["turn:x"]', "turn_urls and turn_secret_env go together"),
        ('turn_urls = ["http://x"]\nturn_secret_env = "A"', "'http://x' is none; give one such as turn:"),
    ],
)
def test_what_a_webrtc_table_cannot_say(write: Any, text: str, said: str) -> None:
    assert said in problem(write(f"[webrtc]\n{text}"))


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a." * 500 + "a = 1", "a = " + "[" * 31 + "]" * 31])
def test_tables_and_lists_without_end_are_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "voicepipe.toml"
    file.write_text(text)

    with pytest.raises(ConfigError, match="deep inside one another; is a bracket missing"):
        config.load(file)


@pytest.mark.parametrize(
    "text",
    [
        "a." * 12_000 + "a = 1",
        "[" + "a." * 12_000 + "a]",
        "\"a\" . 'a' ." * 2_400 + "a = 1",
        "[a" + ".a" * 6_000 + "]\n" + "\n".join(f"k{n} = 1" for n in range(1_300)),
        "a = 'x' # y\nb = \"\"\"it's\"\"\"\"\"\nc = '''a\n\"'''\n" + "a." * 12_000 + "a = 1",
    ],
)
def test_a_key_of_many_parts_takes_no_time(tmp_path: Path, text: str) -> None:
    """tomllib's time and memory grow with their square: 24 KB took a second, and agents are read beside calls."""
    file = tmp_path / "voicepipe.toml"
    file.write_text(text)
    began = time.process_time()

    with pytest.raises(ConfigError, match="deep inside one another"):
        config.load(file)

    assert time.process_time() - began < 0.3


@pytest.mark.parametrize("dots", ["a." * 100, ".a" * 100, "." * 100])
def test_dots_in_texts_and_comments_are_no_keys(tmp_path: Path, dots: str) -> None:
    file = tmp_path / "voicepipe.toml"
    texts = (f'"{dots}"', f"'{dots}'", f'"""\n{dots} "" \\""" {dots}"""', f"'''\n{dots} '' {dots}'''", f'"\\" {dots}"')
    file.write_text(f"# {dots}\n[http]\norigins = [{', '.join(texts)}] # {dots}\n")

    assert all(dots in origin for origin in config.load(file).http.origins)


def test_of_a_file_that_is_none_of_ours_the_first_problems_are_told(write: Any) -> None:
    """Each takes another look at all of the file."""
    lines = problem(write("\n".join(f"k{n} = 1" for n in range(2000)))).splitlines()
    assert len(lines) == toml_file.MOST_PROBLEMS + 1
    assert "k0: there is no such key" in lines[0]
    assert "there may be more" in lines[-1]


@pytest.mark.parametrize("number", ["9" * 5000, "0x" + "f" * 4000], ids=["decimal", "hexadecimal"])
@pytest.mark.parametrize("key", ["slots", "id", "new"])
def test_a_number_too_long_to_be_shown(write: Any, key: str, number: str) -> None:
    assert problem(write(f"[pop]\n{key} = {number}"))


def test_the_metrics_have_a_key_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    http = config.HttpConfig(metrics_key_env="VOICEPIPE_TEST_M")
    monkeypatch.setenv("VOICEPIPE_TEST_A", "one")
    assert credentials.operator_keys(Config(tenants=(A,))).metrics == ""
    with pytest.raises(ConfigError, match=r"http\.metrics_key_env: set the environment variable VOICEPIPE_TEST_M"):
        credentials.operator_keys(Config(http=http))
    monkeypatch.setenv("VOICEPIPE_TEST_M", "one")
    with pytest.raises(ConfigError, match="holds the key of a tenant"):
        credentials.check(Config(http=http, tenants=(A,)))
    monkeypatch.setenv("VOICEPIPE_TEST_A", "two")
    assert credentials.operator_keys(Config(http=http, tenants=(A,))).metrics == "one"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('endpoint = "collector:4318"', "endpoint: 'collector:4318' is none; give one such as http://127.0.0.1:4318"),
        ('endpoint = "http://h:4318/v1/traces"', "is not the base address; leave out what follows it: /v1/traces"),
        ('headers_env = "A"', "headers_env: there is no endpoint that would get them"),
        ("sample = 1.5", "traces.sample: "),
    ],
)
def test_what_a_table_of_traces_cannot_say(write: Any, text: str, said: str) -> None:
    assert said in problem(write(f"[traces]\n{text}"))


def test_headers_for_traces_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Config(traces=TracesConfig(endpoint="https://h/otlp", headers_env="VOICEPIPE_TEST_H"))
    assert credentials.trace_headers(Config()) == {}
    monkeypatch.delenv("VOICEPIPE_TEST_H", raising=False)
    with pytest.raises(ConfigError, match=r"^traces\.headers_env: set the environment variable VOICEPIPE_TEST_H"):
        credentials.check(settings)
    monkeypatch.setenv("VOICEPIPE_TEST_H", "Authorization=Bearer%20a=b, team = voice")
    assert credentials.trace_headers(settings) == {"authorization": "Bearer a=b", "team": "voice"}
    for wrong in ("sesame", "=sesame", "a b=sesame", "a=", "a=sesame%0d%0ab:c", "a=s\u00e9same"):
        monkeypatch.setenv("VOICEPIPE_TEST_H", wrong)
        with pytest.raises(ConfigError, match="VOICEPIPE_TEST_H does not hold headers") as told:
            credentials.check(settings)
        assert "same" not in str(told.value)


# --- recorded voices --------------------------------------------------------------------------------------------


RECORDED = """[engines]
tts = "neutts"
[neutts.voices.anna]
file = "anna.wav"
text = "What she says in it."
"""


def test_a_recorded_voice_needs_a_line_that_says_who_consented(write: Any) -> None:
    for consent in ("", 'consent = " "\n'):
        said = problem(write(RECORDED + consent))
        assert said.startswith("neutts.voices.anna.consent: write who consented to the use of this voice, and when")
    found = config.load(write(RECORDED + 'consent = "Anna Example, 3 May 2026"\n'))
    assert found.neutts.voices["anna"].file == str(write("").parent / "anna.wav")


def test_a_recorded_voice_that_lacks_something_is_told(write: Any) -> None:
    consent = 'consent = "Anna Example, 3 May 2026"\n'
    assert "a voice needs a recording" in problem(write(RECORDED.replace('"anna.wav"', '""') + consent))
    said = problem(write('[neutts]\nvoice = "ann"\n' + RECORDED + consent))
    assert "neutts.voice: there is no [neutts.voices.ann]; there are: anna" in said
