"""linphone, a stock softphone, registers with its password and asks a question; and it calls a directory, and then the
PoP to which that sends it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from latency_probes.own_server import own_server
from tests.clients.linphone import PROGRAM, linphone
from tests.directory.fleets import FRANKFURT, LONDON, fleet, public_key, settings
from tests.directory.server.test_sip_redirect import asking
from tests.ingress.sip.softphone import HOURS, USER, likest, question, transcribed
from tests.support.ports import free_port
from tests.support.waiting import PATIENT_POP, until
from voicepipe.config.phone_config import SipUser
from voicepipe.directory.server.call_placement import DirectoryRules
from voicepipe.directory.server.relay_drain import RelayDrain
from voicepipe.directory.server.sip_redirect import redirecting

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="linphone is not installed: apt install linphone-cli"),
]
ANN = SipUser(name="ann", password_env="ANN_PASSWORD")


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANN_PASSWORD", "s3cret")


@pytest.fixture
def port(tmp_path: Path, password: None) -> Iterator[int]:
    """Where a fresh PoP takes calls by SIP from one user."""
    (config := tmp_path / "user.toml").write_text(USER)
    port = free_port()
    with own_server((*PATIENT_POP, "--sip-port", str(port), "--config", str(config))):
        yield port


async def test_a_phone_registers_and_its_question_is_answered(port: int, tmp_path: Path) -> None:
    async with linphone(tmp_path / "ann", port, "ann", "s3cret") as ann:
        await ann.registered()
        await ann.dial(f"sip:front@127.0.0.1:{port}")
        greeting = await ann.spoken_to()
        await ann.say(question())
        answer = await ann.spoken_to(greeting.size)
        await ann.hang_up()
    text = await transcribed(answer)
    assert likest(text) == HOURS, text


async def test_it_calls_the_pop_to_which_a_directory_sends_it(tmp_path: Path) -> None:
    """London's, seen from the directory in Virginia. It has no account there: with one it would send all its calls by
    its registrar, those to PoPs too."""
    public = public_key(tmp_path)
    users = [{"name": "ann", "password_env": "ANN_PASSWORD"}]
    two = [
        settings(name, public, place, sip={"port": free_port(), "users": users})
        for name, place in (("fra", FRANKFURT), ("lhr", LONDON))
    ]
    config = asking(sip={"trunks": (), "users": (ANN,)})
    async with fleet(*two) as (directory, pops), redirecting(DirectoryRules(config, {}), directory, RelayDrain()):
        async with linphone(tmp_path / "ann", config.sip.port, "ann", "s3cret", registers=False) as ann:
            await ann.dial(f"sip:front-desk@127.0.0.1:{config.sip.port}")
            await until(lambda: [pop.calls for pop in pops] == [0, 1], 10)
            await ann.hang_up()
        await until(lambda: pops[1].calls == 0, 10)
