"""`voicepipe demo --lan`: the certificate, the key, and a PoP behind both."""

import io
import ssl
import stat
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import msgspec
import pytest
from cryptography import x509
from rich.console import Console

from latency_probes.realtime import RealtimeCaller
from voicepipe import config, demo
from voicepipe.base.errors import ConfigError, ProbeError
from voicepipe.commands import cli
from voicepipe.config import Config, credentials
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.pop.running import running
from voicepipe.serving import lan, runtime

NAMES = ("192.168.7.20", "127.0.0.1", "localhost", "desk")
SCRIPTED = EnginesConfig(vad="scripted", asr="scripted", llm="scripted", tts="scripted")


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No certificate of an earlier run, no key of the user's; the environment is put back afterwards."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(lan.KEY_ENV, "set, so that it is restored")
    monkeypatch.delenv(lan.KEY_ENV)


def test_the_certificate_is_for_all_names_and_its_owner_alone(tmp_path: Path) -> None:
    file = lan.certificate(tmp_path / "state" / "lan.pem", NAMES)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    made = x509.load_pem_x509_certificate(file.read_bytes())
    known = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert set(known.get_values_for_type(x509.DNSName)) == {"localhost", "desk"}
    assert set(known.get_values_for_type(x509.IPAddress)) == {ip_address("192.168.7.20"), ip_address("127.0.0.1")}
    ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(file)  # the key in it is its own


def test_it_is_reused_until_it_ends_or_the_network_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "lan.pem"
    first = lan.certificate(file, NAMES).read_bytes()
    assert lan.certificate(file, NAMES[:2]).read_bytes() == first
    other = lan.certificate(file, ("10.0.0.9", *NAMES)).read_bytes()
    assert other != first
    monkeypatch.setattr(lan, "RENEWED", lan.VALID + timedelta(minutes=1))
    assert lan.certificate(file, NAMES).read_bytes() != other
    monkeypatch.undo()
    file.write_text("no certificate")
    assert b"BEGIN CERTIFICATE" in lan.certificate(file, NAMES).read_bytes()


def test_a_place_where_it_cannot_be_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="set XDG_STATE_HOME"):
        lan.certificate(tmp_path / "file" / "lan.pem", NAMES)


def test_addresses_are_those_that_others_can_reach() -> None:
    assert not any(ip_address(ip).is_loopback or ip_address(ip).version == 6 for ip in lan.addresses())


@pytest.mark.parametrize(
    ("argv", "said"), [((), "no address that another one could call"), (("--host", "::"), "not both")]
)
def test_what_keeps_it_from_starting(
    argv: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lan, "addresses", list)
    assert cli.main(["demo", "--lan", "--port", "0", *argv]) == 2
    assert said in capsys.readouterr().err


def test_a_key_of_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lan, "addresses", lambda: ["127.0.0.2"])
    monkeypatch.setenv(lan.KEY_ENV, "open-sesame")
    monkeypatch.setenv(lan.PASSWORD_ENV, "dial-sesame")
    settings = lan.opened(Config())
    assert lan.urls(settings) == ["https://127.0.0.2:8080/#key=open-sesame"]
    assert lan.sip_user(settings) == ("lan", "dial-sesame")


def test_telephones_whose_traffic_can_be_overheard_do_not_send_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lan, "addresses", lambda: ["127.0.0.2"])
    for name in (lan.KEY_ENV, lan.PASSWORD_ENV):
        monkeypatch.setenv(name, "")
    settings = lan.opened(Config())
    _, password = lan.sip_user(settings)
    assert len(password) >= lan.SHORTEST and password not in credentials.keys_of(settings.tenants)


@pytest.mark.parametrize("name", [lan.KEY_ENV, lan.PASSWORD_ENV])
def test_a_key_that_could_be_guessed(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lan, "addresses", lambda: ["127.0.0.2"])
    monkeypatch.setenv(name, "sesame1")
    assert cli.main(["demo", "--lan", "--port", "0"]) == 2
    assert f"{name} is too short" in capsys.readouterr().err


def test_the_invitation_is_letter_for_letter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lan, "addresses", lambda: ["192.168.7.20", "10.0.0.9"])
    monkeypatch.setattr(lan, "fingerprint", lambda config: ":".join(["AB", "CD"] * 16))
    monkeypatch.setenv(lan.KEY_ENV, "a[b]c-" * 12)
    settings = lan.opened(Config())
    said = io.StringIO()
    demo.invite(settings, Console(file=said, width=60, highlight=False))
    assert {*lan.urls(settings), lan.fingerprint(settings)} <= {line.strip() for line in said.getvalue().splitlines()}
    assert "certificate" in said.getvalue()


@pytest.mark.e2e
async def test_a_pop_on_the_network_wants_https_and_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lan, "addresses", lambda: ["127.0.0.2"])  # stands for the network's: reached like another one
    settings = runtime.with_address(lan.opened(config.load()), None, 0)
    settings = msgspec.structs.replace(settings, engines=SCRIPTED)
    [url] = lan.urls(settings)
    page, key = url.split("#key=")
    async with running(settings), httpx.AsyncClient(verify=lan.trust(settings), trust_env=False) as client:
        assert "voicepipe" in (await client.get(page)).text
        assert (await client.get(f"{page}v1/models")).status_code == 401
        listed = await client.get(f"{page}v1/models", headers={"Authorization": f"Bearer {key}"})
        assert [model["id"] for model in listed.json()["data"]] == ["front-desk"]
        with pytest.raises(httpx.HTTPError):
            await client.get(page.replace("https", "http"))
        await demo.call(settings)  # the probe trusts the certificate, and shows the key
        with pytest.raises(ProbeError, match="certificate"):
            await RealtimeCaller(page, "quiet", 0, key).dial()
