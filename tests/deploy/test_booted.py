"""The units under a real systemd, as the page on production has them installed."""

import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.booted_host import BootedHost, booted, joined, needs_systemd
from tests.support.paths import ROOT

pytestmark = [pytest.mark.e2e, needs_systemd]
needs_sqlite = pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs sqlite3 (Debian: apt install sqlite3)")

PAGE = (ROOT / "pops" / "production.md").read_text()
POP, DIRECTORY, NATS = "voicepipe-pop@fra1", "voicepipe-directory", "voicepipe-nats"
OLD, NEW = "0.1.0", "0.2.0"
"""Versions, as the page has them."""
CHECKOUT = f"/opt/voicepipe-{OLD}/checkout"
VOICEPIPE = "/opt/voicepipe/bin/voicepipe"
HERE = r"^(apt-get|python3|/opt/voicepipe-[\d.]+/bin/pip|runuser|scp|ssh) "
"""Commands of the page that need a network: the host has none, and has what they would fetch."""
MANIFEST = """
[pop]
id = "fra1"
slots = 4

[records]
folder = "/var/lib/voicepipe/fra1"
"""
NEVER_LATE = """
[pop]
budget_ms = 600000
loop_lag_ms = 60000
"""


def blocks(heading: str) -> list[str]:
    """The commands that stand below this heading of the page."""
    section = re.split(r"^#+ ", PAGE.partition(f"\n{heading}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)


def block(heading: str, of: str) -> str:
    """The block below this heading with these words."""
    [found] = (block for block in blocks(heading) if of in block)
    return found


def follow(host: BootedHost, heading: str, begins: str = "", folder: str = CHECKOUT) -> None:
    """Run the commands below this heading of the page: all, or those of the block that begins so."""
    for lines in blocks(heading):
        for line in lines.splitlines() if lines.startswith(begins) else ():
            if not re.match(HERE, line):
                host.run("bash", "-c", f"cd {folder} && {line}")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootedHost]:
    """A host with the units, and a PoP that runs."""
    with booted(tmp_path_factory.mktemp("booted") / "box") as host:
        follow(host, "## Install", "apt-get")
        follow(host, "## Install", "install -D")
        follow(host, "### Secrets")
        host.write("/etc/voicepipe/voicepipe.toml", NEVER_LATE)
        host.write("/etc/voicepipe/pops/fra1.toml", MANIFEST)
        yield host


@pytest.fixture
def pop(host: BootedHost) -> BootedHost:
    """The host, with its PoP started."""
    host.run("systemctl", "start", POP)
    return host


def calling(host: BootedHost) -> "subprocess.Popen[str]":
    """A spoken call to the PoP."""
    probe = (sys.executable, "-m", "latency_probes", "ws://127.0.0.1:8080/v1/realtime")
    inside = ("nsenter", "--target", str(host.pid), "--net")
    return subprocess.Popen(
        (*inside, *probe, "--set", "finished", "--calls", "1"),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
    )  # fmt: skip


def until_status(host: BootedHost, begins: str, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not (said := host.shows(POP, "StatusText")).startswith(begins):
        assert time.monotonic() < deadline, said
        time.sleep(0.2)


def test_secrets_are_the_services_and_nobody_elses(pop: BootedHost) -> None:
    credentials = f"/run/credentials/{POP}.service"
    assert pop.run("ls", credentials).split() == ["secret_model"]
    of_pop = ("setpriv", "--reuid=voicepipe", "--regid=voicepipe", "--clear-groups")
    assert pop.run(*of_pop, "cat", f"{credentials}/secret_model")
    hidden = "/etc/voicepipe/secrets/pop/model"
    assert pop.run("bash", "-c", f"! {' '.join(of_pop)} cat {hidden} 2>/dev/null") == ""
    another = f"! setpriv --reuid=voicepipe-nats --clear-groups cat {credentials}/* 2>/dev/null"
    assert pop.run("bash", "-c", another) == ""


def test_a_process_that_hangs_is_ended_and_comes_again(pop: BootedHost) -> None:
    """By the watchdog's signal, at which it writes down its stacks."""
    soon = f"/run/systemd/system/{POP}.service.d/soon.conf"
    pop.write(soon, "[Service]\nWatchdogSec=10\nTimeoutAbortSec=1\n")
    pop.run("systemctl", "daemon-reload")
    first = pop.shows(POP, "MainPID")
    pop.run("systemctl", "kill", "--kill-who=main", "--signal=ABRT", POP)
    second = until_it_came_again(pop, first)
    assert "Fatal Python error: Aborted" in pop.log(POP)
    pop.run("kill", "-STOP", second)
    until_it_came_again(pop, second)
    assert "Watchdog timeout" in pop.log(POP)
    pop.run("rm", soon)
    pop.run("systemctl", "daemon-reload")


def until_it_came_again(host: BootedHost, first: str) -> str:
    """The PoP takes calls, and is another process; which one."""
    deadline = time.monotonic() + 240
    while (now := host.shows(POP, "MainPID")) in (first, "0") or host.shows(POP, "ActiveState") != "active":
        assert time.monotonic() < deadline, host.log(POP)
        time.sleep(0.2)
    return now


def test_a_pop_answers_a_call_in_its_sandbox_and_a_stop_waits_for_the_call(pop: BootedHost) -> None:
    assert pop.shows(POP, "ActiveState") == "active"
    assert pop.shows(POP, "StatusText") == "takes calls; 0 of 4 slots are taken"
    call = calling(pop)
    until_status(pop, "takes calls; 1 of 4")
    pop.run("systemctl", "reload", POP)
    deadline = time.monotonic() + 60
    while "the files were read again" not in pop.log(POP) or pop.shows(POP, "ActiveState") != "active":
        assert time.monotonic() < deadline, pop.log(POP)
        time.sleep(0.2)
    pop.run("systemctl", "stop", "--no-block", POP)
    until_status(pop, "draining")
    assert pop.shows(POP, "ActiveState") == "deactivating"
    said, _ = call.communicate(timeout=300)
    assert "1 calls, 0 failed or ended early" in said
    pop.wait(POP, "ActiveState", "inactive")
    assert pop.shows(POP, "Result") == "success"
    assert "Traceback" not in pop.log(POP)


def test_an_upgrade_under_a_call_changes_the_main_process_and_cuts_nothing(pop: BootedHost) -> None:
    first, restarts = pop.shows(POP, "MainPID"), pop.shows(POP, "NRestarts")
    call = calling(pop)
    until_status(pop, "takes calls; 1 of 4")
    assert "takes the calls now; 1 call goes on" in pop.run("/opt/voicepipe/bin/voicepipe", "upgrade")
    pop.wait(POP, "MainPID", second := re.findall(r"process (\d+)", pop.log(POP))[-1])
    assert second != first
    until_status(pop, "takes calls; 1 of 4 slots are taken, 1 of them in the process before")
    said, _ = call.communicate(timeout=300)
    assert "1 calls, 0 failed or ended early" in said
    until_status(pop, "takes calls; 0 of 4")
    deadline = time.monotonic() + 60
    while pop.run("bash", "-c", f"test -d /proc/{first} && echo there || true"):
        assert time.monotonic() < deadline, pop.log(POP)
        time.sleep(0.2)
    assert (pop.shows(POP, "ActiveState"), pop.shows(POP, "NRestarts")) == ("active", restarts)
    pop.run("kill", "-KILL", second)  # It is the service's main process: systemd starts another one.
    until_it_came_again(pop, second)
    pop.run("systemctl", "stop", POP)
    assert pop.shows(POP, "ActiveState") == "inactive"


def test_a_second_signal_ends_the_calls(pop: BootedHost) -> None:
    call = calling(pop)
    until_status(pop, "takes calls; 1 of 4")
    pop.run("systemctl", "stop", "--no-block", POP)
    until_status(pop, "draining")
    pop.run("systemctl", "kill", "--kill-who=main", POP)
    pop.wait(POP, "ActiveState", "inactive")
    call.communicate(timeout=300)


def test_a_pop_that_goes_by_order_stays_away(pop: BootedHost) -> None:
    """By `voicepipe drain` it ends in the same way: by itself, and well."""
    before = pop.shows(POP, "NRestarts")
    pop.run("kill", "-TERM", pop.shows(POP, "MainPID"))
    pop.wait(POP, "ActiveState", "inactive")
    time.sleep(7)  # It would come again after 5.
    assert (pop.shows(POP, "ActiveState"), pop.shows(POP, "NRestarts")) == ("inactive", before)


def runs_from(host: BootedHost) -> str:
    """The version of the PoP's process."""
    environment = host.run("cat", f"/proc/{host.shows(POP, 'MainPID')}/environ")
    found = re.search(r"PYTHONPATH=/opt/voicepipe-([\d.]+)/", environment)
    assert found, environment
    return found[1]


def test_an_upgrade_is_another_link_and_so_is_the_way_back(pop: BootedHost) -> None:
    assert runs_from(pop) == OLD
    call = calling(pop)
    until_status(pop, "takes calls; 1 of 4")
    follow(pop, "### The new version beside the old one")
    follow(pop, "### A fleet", "systemctl stop")
    said, _ = call.communicate(timeout=300)
    assert "1 calls, 0 failed or ended early" in said
    assert (runs_from(pop), pop.shows(POP, "StatusText")) == (NEW, "takes calls; 0 of 4 slots are taken")
    follow(pop, "### Back to the old version")
    assert runs_from(pop) == OLD
    call = calling(pop)
    until_status(pop, "takes calls; 1 of 4")
    before = pop.shows(POP, "MainPID")
    follow(pop, "### One host alone", "ln -sfn")
    assert pop.shows(POP, "MainPID") != before
    said, _ = call.communicate(timeout=300)
    assert "1 calls, 0 failed or ended early" in said
    pop.run("ln", "-sfn", f"/opt/voicepipe-{OLD}", "/opt/voicepipe")
    follow(pop, "### In a pipeline", "systemd-run")
    pop.wait(POP, "ActiveState", "active")


def kept(host: BootedHost) -> dict[str, str]:
    """The records, and how each call ended."""
    rows = json.loads(host.run(VOICEPIPE, "records", "--json"))["data"]
    return {row["id"]: row["reason"] for row in rows}


@needs_sqlite
def test_records_that_are_backed_up_under_a_call_are_put_back(pop: BootedHost) -> None:
    before = kept(pop)
    call = calling(pop)
    until_status(pop, "takes calls; 1 of 4")
    follow(pop, "### Back up")
    call.communicate(timeout=300)
    [that] = kept(pop).keys() - before.keys()
    deadline = time.monotonic() + 60
    while not kept(pop)[that]:
        assert time.monotonic() < deadline, pop.log(POP)
        time.sleep(0.2)
    assert kept(pop)[that] != "cut"
    pop.run(VOICEPIPE, "records", "--delete", that)
    assert kept(pop) == before

    pop.run("rm", "/etc/voicepipe/pops/fra1.toml")
    follow(pop, "### Put back")
    assert kept(pop) == {**before, that: "cut"}, "what was erased is there again, as it was when it was copied"
    assert pop.run("stat", "--format=%U %a", "/var/lib/voicepipe/fra1/fra1.db") == "voicepipe 600\n"
    follow(pop, "### What was erased, and comes back")
    pop.run(VOICEPIPE, "records", "--delete", that)
    assert kept(pop) == before


HOSTS = """
callers = "voice.example.com"
customers = ["harbour-house"]
phones = ["desk"]

[[hosts]]
name = "eu-1.example.com"
address = "10.1.0.1"
place = [50.1, 8.7]
nats = true
directory = true
probe = true

[[hosts]]
name = "fra1.example.com"
address = "10.1.0.2"
place = [50.1, 8.7]
pops = ["fra1"]
slots = 4
"""
DNS = "10.1.0.1 eu-1.example.com voice.example.com\n10.1.0.2 fra1.example.com\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[tuple[BootedHost, BootedHost]]:
    """Two hosts, each with voicepipe and its files, which were made on the first one."""
    with booted(tmp_path / "eu-1") as eu, booted(tmp_path / "fra1") as fra:
        joined(eu, fra, ("10.1.0.1/24", "10.1.0.2/24"))
        for host in (eu, fra):
            follow(host, "## Install", "apt-get")
        eu.write("/srv/names.toml", HOSTS)
        eu.write("/usr/local/bin/nano", "#!/bin/sh\ncp /srv/names.toml $1\n", 0o755)
        follow(eu, "## Names, and the files of each host", "/opt", folder="/srv")
        for host, name in ((eu, "eu-1"), (fra, "fra1")):
            host.write("/etc/hosts", f"127.0.0.1 localhost\n{DNS}")
            follow(host, "## Install", "install -D")
            folder = eu.run("tar", "-C", f"/srv/fleet/{name}.example.com", "-c", "--format=ustar", ".")
            host.run("tar", "-C", "/etc/voicepipe", "-x", given=folder)
            host.run("systemd-tmpfiles", "--create", "/etc/tmpfiles.d/voicepipe.conf")
            follow(host, "## Firewall")
        yield eu, fra


def test_the_page_makes_a_fleet_of_two_hosts_that_answers_at_every_door(fleet: tuple[BootedHost, BootedHost]) -> None:
    """From the names of its hosts. The probe calls by WebSocket, WebRTC and SIP, through the directory and straight."""
    eu, fra = fleet
    follow(eu, "## NATS")
    follow(eu, "## Directories")
    assert eu.shows(DIRECTORY, "StatusText") == "answers; 0 calls are relayed"
    fra.write("/etc/voicepipe/voicepipe.toml", NEVER_LATE)
    follow(fra, "## PoPs", "runuser")
    deadline = time.monotonic() + 60
    while "fra1" not in (heard := eu.run("bash", "-c", block("## PoPs", "pops --directory"), check=False)):
        assert time.monotonic() < deadline, (heard, eu.log(DIRECTORY), fra.log(POP))
        time.sleep(0.5)

    eu.run("sed", "-i", "$ a budget_ms = 60000", "/etc/voicepipe/probe.toml")  # On a slow machine it is no fault.
    follow(eu, "## Probes")
    assert eu.shows("voicepipe-probe", "ActiveState") == "active"
    eu.run("systemctl", "stop", "voicepipe-probe")

    renew(eu)
    sign_with_another_key(eu, fra)
    follow(eu, "### A fleet", "ln -sfn")
    follow(eu, "### A fleet", "systemctl restart voicepipe-nats")
    assert eu.run("readlink", "/opt/voicepipe") == f"/opt/voicepipe-{NEW}\n"

    for host, unit in ((eu, DIRECTORY), (eu, NATS), (fra, POP)):
        host.run("systemctl", "stop", unit)
        assert (host.shows(unit, "ActiveState"), host.shows(unit, "Result")) == ("inactive", "success"), host.log(unit)
        assert "Traceback" not in host.log(unit)


RENEWED = "/etc/letsencrypt/live/fra1.example.com"
CERTIFICATE = f"""
mkdir -p {RENEWED}
openssl req -x509 -newkey ed25519 -nodes -keyout {RENEWED}/privkey.pem -out {RENEWED}/fullchain.pem \\
  -subj /CN=eu-1.example.com -addext subjectAltName=DNS:eu-1.example.com
"""
SERVED = "openssl s_client -connect eu-1.example.com:443 </dev/null 2>/dev/null | openssl x509 -noout -fingerprint"
MADE = f"openssl x509 -noout -fingerprint -in {RENEWED}/fullchain.pem"


def renew(host: BootedHost) -> None:
    """A directory's certificate becomes one of another authority, and that is renewed, by the ACME client's hook."""
    own = host.run("cat", "/etc/voicepipe/directory.toml")
    host.run("bash", "-ec", CERTIFICATE)
    follow(host, "## A renewed certificate")
    host.write("/etc/voicepipe/directory.toml", re.sub(r"/tls/(\w+)\.pem", r"/tls/public-\1.pem", own))
    host.run("systemctl", "reload", DIRECTORY)
    until_served(host)
    host.run("bash", "-ec", CERTIFICATE)
    follow(host, "## A renewed certificate", "RENEWED_LINEAGE")
    until_served(host)
    assert host.run("stat", "--format=%G %a", "/etc/voicepipe/tls/public-privkey.pem") == "voicepipe 640\n"
    host.write("/etc/voicepipe/directory.toml", own)
    assert "Reloaded server configuration" in host.log(NATS)


def until_served(host: BootedHost) -> None:
    """The certificate that was made last is the one that the directory shows."""
    deadline = time.monotonic() + 60
    while (served := host.run("bash", "-c", SERVED, check=False)) != host.run("bash", "-c", MADE):
        assert time.monotonic() < deadline, (served, host.log(DIRECTORY))
        time.sleep(0.5)


def sign_with_another_key(eu: BootedHost, fra: BootedHost) -> None:
    """The directory's, as the page has it: both are taken, then it signs with the other one."""
    follow(eu, "## New keys and passwords", "openssl")
    assert eu.run("stat", "--format=%G %a", "/etc/voicepipe/keys/harbour-house-2") == "voicepipe 640\n"
    fra.write("/etc/voicepipe/directory-2.pub.pem", eu.run("cat", "/etc/voicepipe/directory-2.pub.pem"))
    eu.run("install", "-m", "644", "/srv/fleet/fra1.example.com/directory.pub.pem", "/etc/voicepipe/")
    one, two = "/etc/voicepipe/directory.pub.pem", "/etc/voicepipe/directory-2.pub.pem"
    its = fra.run("cat", "/etc/voicepipe/pops/fra1.toml")
    fra.write("/etc/voicepipe/pops/fra1.toml", its.replace(f'"{one}"', f'"{one}", "{two}"'))
    own = eu.run("cat", "/etc/voicepipe/directory.toml")
    both = own.replace("[directory]\n", f'[directory]\nkeys = ["{one}", "{two}"]\n')
    eu.write("/etc/voicepipe/directory.toml", both)
    for host, unit, key in ((fra, POP, "fleet.keys"), (eu, DIRECTORY, "directory.keys")):
        host.run("systemctl", "reload", unit)
        deadline = time.monotonic() + 60
        while not re.search(f"changed: .*{key}", said := host.log(unit)):
            assert time.monotonic() < deadline, said
            time.sleep(0.2)
    eu.write("/etc/voicepipe/directory.toml", both.replace("secret_directory.pem", "secret_directory-2.pem"))
    eu.run("systemctl", "restart", DIRECTORY)
    follow(eu, "## Probes", "systemd-run")
    eu.run("systemctl", "stop", "voicepipe-probe")
