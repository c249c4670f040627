"""A whole PoP called by baresip: spoken questions in every codec, hold, keys, SDES, a password. What it heard is
transcribed by our own recogniser."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from latency_probes.own_server import own_server
from tests.ingress.sip.baresip import Baresip, baresip
from tests.ingress.sip.softphone import HOURS, USER, likest, question, transcribed
from tests.support.ports import free_port
from tests.support.waiting import PATIENT_POP
from voicepipe.audio import Pcm

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which("baresip") is None, reason="baresip is not installed: apt install baresip-core"),
]

LOGIN = "auth_user=ann;auth_pass=s3cret"
RECEIVES = r"audio=\d+/"
"""Followed by bits a second: the line that it prints time and again."""


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where a fresh PoP takes calls by SIP from one user."""
    config, port = tmp_path_factory.mktemp("pop") / "user.toml", free_port()
    config.write_text(USER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANN_PASSWORD", "s3cret")
        with own_server((*PATIENT_POP, "--sip-port", str(port), "--config", str(config))):
            yield port


@asynccontextmanager
async def calling(port: int, folder: Path, more: str) -> AsyncIterator[Baresip]:
    """A call that has been taken."""
    async with baresip(folder, f"<sip:ann@127.0.0.1>;regint=0;{LOGIN};{more}") as ann:
        await ann.dial(port)
        yield ann


async def answered(port: int, folder: Path, more: str) -> Pcm:
    """Ask; what was heard."""
    async with calling(port, folder, more) as ann:
        greeting = await ann.spoken_to()
        await ann.say(question())
        answer = await ann.spoken_to(greeting.size)
        await ann.hang_up()
        return answer


async def test_a_spoken_question_is_answered_in_every_codec_and_by_srtp(port: int, tmp_path: Path) -> None:
    kinds = {
        name: f"audio_codecs={codec}"
        for name, codec in (("pcmu", "PCMU/8000/1"), ("g722", "G722/16000/1"), ("opus", "opus/48000/2"),
                            ("pcma_sdes", "PCMA/8000/1;mediaenc=srtp-mand"))
    }  # fmt: skip
    two = asyncio.Semaphore(2)  # more telephones at a time are too much for a slow machine

    async def asked(name: str) -> str:
        async with two:
            return await transcribed(await answered(port, tmp_path / name, kinds[name.split("-")[0]]))

    texts = dict(zip(kinds, await asyncio.gather(*map(asked, kinds)), strict=True))
    for name in [name for name, text in texts.items() if likest(text) != HOURS]:  # not heard in time: once more, alone
        texts[name] = await asked(f"{name}-again")
    assert {name: likest(text) for name, text in texts.items()} == dict.fromkeys(kinds, HOURS), texts


async def test_a_softphone_on_this_machine_is_heard_as_it_is_installed(port: int, tmp_path: Path) -> None:
    async with baresip(tmp_path, f"<sip:ann@127.0.0.1>;regint=0;{LOGIN}", on_loopback=False) as ann:
        await ann.dial(port)
        greeting = await ann.spoken_to()
        await ann.say(question())
        assert (await ann.spoken_to(greeting.size)).size
        await ann.hang_up()


async def test_nothing_is_sent_on_hold_and_all_goes_on_afterwards(port: int, tmp_path: Path) -> None:
    async with calling(port, tmp_path, "audio_codecs=PCMA/8000/1") as ann:
        await ann.logged(RECEIVES + r"[56]\d{4} \S+\s*$")
        ann.command("hold")
        await ann.logged(RECEIVES + r"0 \S+\s*$")
        ann.command("resume")
        await ann.logged(RECEIVES + r"[56]\d{4} \S+\s*$")
        await ann.hang_up()
        assert all(told["ok"] for told in ann.told if "response" in told), ann.told


async def test_a_key_is_answered(port: int, tmp_path: Path) -> None:
    async with calling(port, tmp_path, "audio_codecs=PCMU/8000/1;dtmfmode=rtpevent") as ann:
        greeting = await ann.spoken_to()
        ann.command("sndcode", "1")
        text = await transcribed(await ann.spoken_to(greeting.size))
        await ann.hang_up()
    assert likest(text) == HOURS, text


async def test_a_phone_registers_with_its_password(port: int, tmp_path: Path) -> None:
    async with baresip(tmp_path / "ann", f"<sip:ann@127.0.0.1:{port}>;regint=60;{LOGIN}") as ann:
        await ann.logged(r"200 OK \(voicepipe\)")
    async with baresip(tmp_path / "eve", f"<sip:ann@127.0.0.1:{port}>;regint=60;auth_user=ann;auth_pass=guess") as eve:
        await eve.logged("403 Forbidden")
