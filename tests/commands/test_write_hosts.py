"""`voicepipe configs write`: each host of a fleet gets what its services start with, and nobody else's secrets."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from tests.directory.nats_server import PROGRAM, needs_nats
from tests.support.paths import ROOT
from voicepipe import config
from voicepipe.commands import cli
from voicepipe.config import load_directory, load_probe, toml_file

HOSTS = ROOT / "pops" / "deploy" / "hosts.toml"
EU, FRA, ASIA, SIN = (f"{name}.example.com" for name in ("eu-1", "fra1", "asia-1", "sin1"))
needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl (Debian: apt install openssl)")


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    """The folders of the shipped fleet, with these changes to its file."""
    text = HOSTS.read_text()
    for was, now in changes:
        assert was in text
        text = text.replace(was, now)
    (folder / "hosts.toml").write_text(text)
    assert cli.main(["configs", "write", str(folder / "hosts.toml"), str(folder / "fleet")]) == 0
    return folder / "fleet"


def arrived(host: Path, service: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The host's folder as its service finds it: with its secrets under systemd's names, and paths that lead here."""
    credentials = host.parent / f"{host.name}-{service}"
    credentials.mkdir()
    for secret in (host / "secrets" / service).iterdir():
        shutil.copy(secret, credentials / f"secret_{secret.name}")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    for file in (*host.glob("*.toml"), *host.glob("*.conf"), *host.glob("pops/*.toml")):
        file.write_text(file.read_text().replace("/etc/voicepipe", str(host)))
    return host


def test_each_host_has_what_it_runs_and_no_more(tmp_path: Path) -> None:
    fleet = written(tmp_path)
    files = {host: {path.name for path in (fleet / host).rglob("*") if path.is_file()} for host in (EU, FRA, ASIA, SIN)}
    everywhere = {"fleet-ca.pem", "fullchain.pem", "privkey.pem", "nftables.conf", "operator", "metrics",
                  "tenant-harbour-house", "tenant-probe"}  # fmt: skip
    assert all(everywhere <= its for its in files.values())
    directory, nats = (
        {"directory.toml", "directory.pem", "bus-directory", "phone-desk"},
        {"nats.conf", "nats-users.conf"},
    )
    assert files[EU] - everywhere == directory | nats
    assert files[FRA] - everywhere == {"fra1.toml", "directory.pub.pem", "bus-fra1", "phone-desk"} | nats
    assert files[SIN] - everywhere == {"sin1.toml", "directory.pub.pem", "bus-sin1", "phone-desk"}
    assert files[ASIA] - everywhere == directory | nats | {"probe.toml", "prometheus.yml", "voicepipe.rules.yml"}


def test_secrets_are_nobody_elses_to_read(tmp_path: Path) -> None:
    fleet = written(tmp_path)
    secret = [*fleet.glob("*/secrets/*/*"), *(fleet / "secrets").iterdir(), *fleet.glob("*/tls/privkey.pem")]
    assert len(secret) > 30 and {path.stat().st_mode & 0o777 for path in secret} == {0o600}
    texts = [path.read_text().strip() for path in (fleet / "secrets").iterdir() if "." not in path.name]
    assert len(set(texts)) == len(texts) == 8 and min(map(len, texts)) > 40


def test_a_directory_and_a_pop_can_start_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = written(tmp_path)
    directory = load_directory(arrived(fleet / EU, "directory", monkeypatch) / "directory.toml")
    assert cli.main(["check", "--strict", str(fleet / EU / "directory.toml")]) == 0
    pop = config.load(None, arrived(fleet / FRA, "pop", monkeypatch) / "pops" / "fra1.toml")
    assert cli.main(["check", str(fleet / FRA / "pops" / "fra1.toml")]) == 0

    assert (pop.fleet.url, pop.fleet.sip) == ("https://fra1.example.com:8443", "203.0.113.12:5060")
    assert {"203.0.113.11", "203.0.113.21"} < set(pop.http.proxies)
    [public] = pop.fleet.keys
    private = load_pem_private_key(Path(directory.directory.key).read_bytes(), None)
    assert private.public_key() == load_pem_public_key(Path(public).read_bytes())
    assert (
        [each.name for each in pop.tenants] == [each.name for each in directory.tenants] == ["harbour-house", "probe"]
    )
    key = [its.tenants[0].key.read() for its in (pop, directory)]
    assert key == [(fleet / "secrets" / "tenant-harbour-house").read_text().strip()] * 2
    assert [user.name for user in pop.sip.users] == [user.name for user in directory.sip.users] == ["desk"]
    for its in (pop, directory):  # The probe's calls are the probe's tenant's, by its host's address.
        assert [(trunk.name, trunk.addresses) for trunk in its.sip.trunks] == [("probe", ("203.0.113.21",))]
        assert [(route.trunk, route.tenant) for route in its.routes] == [("probe", "probe"), ("", "harbour-house")]


def test_the_nearest_server_of_the_bus_is_asked_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = written(tmp_path)
    pop = config.load(None, arrived(fleet / SIN, "pop", monkeypatch) / "pops" / "sin1.toml")
    assert pop.bus.servers[0] == "tls://asia-1.example.com:4222" and len(pop.bus.servers) == 3


def test_a_probe_calls_every_door_and_its_calls_fit_into_a_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = written(tmp_path)
    host = arrived(fleet / ASIA, "probe", monkeypatch)
    probe = load_probe(host / "probe.toml")
    [target] = probe.targets
    assert (target.directory, target.straight) == ("https://voice.example.com", True)
    assert target.by == ("websocket", "webrtc", "sip") and probe.probe.calls * 60 >= 9 * 12
    assert cli.main(["check", "--strict", str(host / "probe.toml")]) == 0
    scraped = yaml.safe_load((host / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    assert len(scraped[0]["static_configs"][0]["targets"]) == 4 and scraped[1]["job_name"] == "voicepipe-probe"


@needs_nats
def test_nats_reads_them_and_each_route_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PROGRAM is not None
    fleet = written(tmp_path)
    users = (fleet / EU / "nats-users.conf").read_text()
    assert users == (fleet / ASIA / "nats-users.conf").read_text()
    assert '"vp.brief.sin1"' in users and "iad1" not in users
    for host in (EU, FRA, ASIA):
        file = arrived(fleet / host, "pop" if host == FRA else "directory", monkeypatch) / "nats.conf"
        done = subprocess.run((PROGRAM, "-t", "-c", str(file)), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    routes = [(fleet / host / "nats.conf").read_text().count('"nats-route://') for host in (EU, FRA, ASIA)]
    assert routes == [0, 1, 2]
    for host in (EU, FRA, ASIA):  # By their addresses they would find no valid certificate.
        assert f'\n  advertise: "{host}:6222"\n' in (fleet / host / "nats.conf").read_text()


@needs_openssl
def test_certificates_are_good_for_the_hosts_names(tmp_path: Path) -> None:
    fleet = written(tmp_path)

    def verified(host: str, name: str, purpose: str, of: str = "-verify_hostname") -> bool:
        by = (
            "-CAfile",
            str(fleet / host / "fleet-ca.pem"),
            "-purpose",
            purpose,
            of,
            name,
            "-x509_strict",
        )
        chain = str(fleet / host / "tls" / "fullchain.pem")
        return subprocess.run(("openssl", "verify", *by, chain), capture_output=True, check=False).returncode == 0

    assert (
        verified(EU, EU, "sslserver")
        and verified(EU, EU, "sslclient")
        and verified(EU, "voice.example.com", "sslserver")
    )
    assert verified(EU, "203.0.113.11", "sslserver", "-verify_ip")
    assert verified(FRA, FRA, "sslserver") and not verified(FRA, "voice.example.com", "sslserver")


def test_written_again_secrets_stay_and_a_new_host_gets_its_own(tmp_path: Path) -> None:
    fleet = written(tmp_path)
    kept = {path.name: path.read_text() for path in (fleet / "secrets").iterdir()}
    users = (fleet / EU / "nats-users.conf").read_text()
    written(tmp_path, ('["sin1"]', '["sin1", "sin2"]'))
    now = {path.name: path.read_text() for path in (fleet / "secrets").iterdir()}
    assert {name: now[name] for name in kept} == kept and now.keys() - kept.keys() == {"bus-sin2"}
    first, second = (toml_file.tables(fleet / SIN / "pops" / f"{pop}.toml") for pop in ("sin1", "sin2"))
    assert (first["webrtc"], second["webrtc"]) == ({"first_port": 20000, "last_port": 20999},
                                                   {"first_port": 21000, "last_port": 21999})  # fmt: skip
    assert (second["http"]["port"], second["sip"]["port"]) == (8444, 5061)
    assert "define http = { 8443, 8444 }" in (fleet / SIN / "nftables.conf").read_text()
    assert '"sin2"' in (fleet / EU / "nats-users.conf").read_text() and '"sin2"' not in users


def test_without_phones_there_is_no_sip_and_a_nat_has_its_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = written(tmp_path, ('["desk"]', "[]"), ("# nat = true  ", "nat = true  "))
    pop = config.load(None, arrived(fleet / FRA, "pop", monkeypatch) / "pops" / "fra1.toml")
    assert (pop.sip.port, pop.fleet.sip, pop.webrtc.public_address) == (0, "", "203.0.113.12")
    probe = load_probe(arrived(fleet / ASIA, "probe", monkeypatch) / "probe.toml")
    assert "sip" not in probe.targets[0].by


def test_a_trunk_is_let_in_by_its_addresses_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trunk = '[[trunks]]\nname = "carrier"\naddresses = ["198.51.100.0/24"]\nplace = [50.1, 8.7]\n\n[[hosts]]'
    fleet = written(tmp_path, ('["desk"]', "[]"), ('[[hosts]]\nname = "eu-1', f'{trunk}\nname = "eu-1'))
    directory = load_directory(arrived(fleet / EU, "directory", monkeypatch) / "directory.toml")
    pop = config.load(None, arrived(fleet / FRA, "pop", monkeypatch) / "pops" / "fra1.toml")
    assert directory.sip.trunks[1].place == (50.1, 8.7) and pop.sip.trunks[1].addresses == ("198.51.100.0/24",)
    rules = (fleet / FRA / "nftables.conf").read_text()
    assert "define sip_from = { 203.0.113.21, 198.51.100.0/24 }" in rules


def test_public_certificates_are_for_callers_and_the_bus_keeps_its_own(tmp_path: Path) -> None:
    fleet = written(tmp_path, ('certificates = "own" ', 'certificates = "public" '))
    directory = (fleet / EU / "directory.toml").read_text()
    assert 'cert = "/etc/voicepipe/tls/public-fullchain.pem"' in directory
    assert '"/etc/voicepipe/tls/fullchain.pem"' in (fleet / EU / "nats.conf").read_text()


def test_what_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fleet").write_text("")
    assert cli.main(["configs", "write", str(HOSTS), str(tmp_path / "fleet")]) == 2
    assert f"{tmp_path / 'fleet'} cannot be written" in capsys.readouterr().err


def test_a_directory_and_pops_share_a_host_without_its_ports(tmp_path: Path) -> None:
    fleet = written(tmp_path, ('pops = ["sin1"]', 'pops = ["sin1", "sin2"]\ndirectory = true'))
    host = fleet / SIN
    files = [toml_file.tables(host / name) for name in ("directory.toml", "pops/sin1.toml", "pops/sin2.toml")]
    assert [its["sip"]["port"] for its in files] == [5060, 5061, 5062]
    assert [its["http"]["port"] for its in files] == [443, 8443, 8444]
    rules = (host / "nftables.conf").read_text()
    assert "define http = { 443, 8443, 8444 }" in rules and "define sip = { 5060, 5061, 5062 }" in rules
