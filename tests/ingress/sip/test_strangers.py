"""Who may not call: scanned and flooded by strangers, a PoP answers its callers as before, and says so once."""

import asyncio
import gc
import secrets

import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import Phone, opened, phone, sip
from voicepipe.config.phone_config import SipTrunk, SipUser
from voicepipe.ingress.sip.stack import Stack

TRUNK = SipTrunk(name="carrier", addresses=("127.0.0.1",))
STRANGER = "127.0.0.2"
DESK = SipUser(name="desk", password_env="DESK_PASSWORD")


def stack() -> Stack:
    """The one that listens."""
    gc.collect()
    (found,) = (one for one in gc.get_objects() if isinstance(one, Stack) and one._transactions.tserver is not None)
    return found


async def scan(eve: Phone, numbers: range) -> None:
    """As scanners do it: each number by OPTIONS, REGISTER and INVITE, without waiting for answers."""
    for number in numbers:
        for method in ("OPTIONS", "REGISTER", "INVITE"):
            eve.call_id = secrets.token_hex(6)
            body = eve.sdp() if method == "INVITE" else ""
            eve.request(method, [("User-Agent", "friendly-scanner")], body, uri=f"sip:{number}@127.0.0.1")
        await asyncio.sleep(0.002)


@pytest.mark.parametrize("users", [(), (DESK,)])
async def test_a_scan_finds_nobody_and_does_not_fill_the_log(
    users: tuple[SipUser, ...], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "s3cret")
    pop = FakePop(sip(trunks=(TRUNK,), users=users))
    async with serving(pop), phone(pop, STRANGER) as eve, phone(pop) as ann:
        await scan(eve, range(100, 300))
        assert (await ann.dial()).code == 200, "the trunk's calls come in all the while"
        await ann.hang_up()
        codes = {said.code for said in eve.said if said.code}
    assert codes == ({401} if users else {403}) and len(pop.calls) == 1
    told = [record for record in caplog.records if STRANGER in record.getMessage()]
    assert len(told) < (3 if users else 60), "to be asked for a password is no news"
    assert users or len(told) > 1
    assert "come in masses" in caplog.text


async def flood(server: tuple[str, int]) -> None:
    junk, _ = await opened(lambda data, source: None, STRANGER)
    head = b"INVITE sip:front@127.0.0.1 SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.2;branch=z9hG4bK"
    for n in range(20_000):
        junk.sendto(head + secrets.token_bytes(300), server)
        if n % 100 == 99:
            await asyncio.sleep(0.005)
    junk.close()


async def insistent(ann: Phone) -> None:
    """Call; an INVITE that is not answered is sent again."""
    before = len(ann.said)
    sent = ann.invite()
    async with asyncio.timeout(60):
        while not (answers := [said for said in ann.said[before:] if said.code == 200]):
            await asyncio.sleep(0.25)
            ann.sip.sendto(sent, ann.server)
    ann.took(answers[0])
    ann.ack()


async def test_a_flood_of_junk_makes_no_caller_wait_and_is_forgotten() -> None:
    pop = FakePop(sip(trunks=(TRUNK,)))
    async with serving(pop), phone(pop) as ann:
        flooding = asyncio.create_task(flood(ann.server))
        while not flooding.done():
            await insistent(ann)
            await ann.hang_up()
            ann.to_tag = ann.target = ""
        assert len(pop.calls) > 1
        assert len(stack()._transactions.l1rcache) < 2000
