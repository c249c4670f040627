"""The firewall lets in what a PoP, a directory and NATS are reached by, and nothing else."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleet.namespaces import ENTER, forbidden
from tests.support.paths import ROOT

RULES = ROOT / "pops" / "deploy" / "nftables.conf"
pytestmark = pytest.mark.skipif(shutil.which("nft") is None, reason="needs nft (Debian: apt install nftables)")


@pytest.fixture(autouse=True, scope="module")
def namespaces() -> None:
    """What all of these tests need."""
    if why := forbidden():
        pytest.skip(f"needs network namespaces: {why}")


def let_in(*knocks: str, rules: Path = RULES) -> set[str]:
    """Those that the host answers."""
    command = (*ENTER, sys.executable, "-m", "tests.deploy.knocks", str(rules), *knocks)
    return set(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split())


def test_nft_reads_the_file() -> None:
    done = subprocess.run((*ENTER, "nft", "-c", "-f", str(RULES)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_strangers_reach_doors_and_media_alone() -> None:
    doors = {"tcp/22", "tcp/443", "tcp/8443", "udp/5060"}
    media = {"udp/20000", "udp/21999", "udp/22000", "udp/23999"}
    closed = {"tcp/25", "tcp/4222", "tcp/6222", "tcp/8222", "tcp/5060", "udp/8443", "udp/19999", "udp/24000"}
    assert let_in(*doors, *media, *closed) == doors | media


def test_nats_is_reached_by_the_hosts_that_are_named() -> None:
    assert let_in("tcp/4222@192.0.2.7", "tcp/6222@192.0.2.8", "tcp/8222@192.0.2.7") == {"tcp/4222", "tcp/6222"}


def test_phones_may_be_trunks_alone(tmp_path: Path) -> None:
    changed = tmp_path / "nftables.conf"
    text, count = re.subn(r"^(define sip_from = ).*$", r"\1{ 198.51.100.0/24 }", RULES.read_text(), flags=re.MULTILINE)
    changed.write_text(text)
    assert count == 1 and let_in("udp/5060", rules=changed) == set()
    assert let_in("udp/5060@198.51.100.7", rules=changed) == {"udp/5060"}


def test_it_is_loaded_anew_beside_other_tables() -> None:
    again = f"nft -f {RULES} && nft add table ip nat && nft -f {RULES} && nft list tables"
    done = subprocess.run((*ENTER, "sh", "-c", again), capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == {"table inet voicepipe", "table ip nat"}
