"""What telephones, proxies and strangers do that is odd: nobody's call but theirs has to do with it."""

import asyncio
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, phone, sip
from tests.support.waiting import until
from voicepipe.config.phone_config import SipTrunk
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.header_text import SipError

pytestmark = pytest.mark.slow

TRUNK = SipTrunk(name="carrier", addresses=("127.0.0.0/8",))


@pytest.fixture
def without_ack(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is answered and gets no ACK ends soon."""
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 0.1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Contact", "<sip:x@1.2.3.4;p=a b>"),
        ("Contact", "<sip:x@b c>"),
        ("Contact", "<sip:x@127.0.0.1\x00>"),
        ("Record-Route", "<sip:127.0.0.1;a=b c;lr>"),
        ("Record-Route", "<sip:127.0.0.1\x07;lr>"),
    ],
)
async def test_an_address_that_is_none_is_refused_and_harms_nobody(name: str, value: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as odd:
        await ann.dial()
        if name == "Contact":
            odd.contact = value
        answer = await odd.dial(headers=[] if name == "Contact" else [(name, value)])
        assert answer.start == "SIP/2.0 400 Bad Request"
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before + 5)
        assert (await ann.hang_up()).code == 200


async def test_a_call_that_fails_at_its_end_ends_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as odd:
        await ann.dial()
        await odd.dial()

        def fails(*_: Any) -> None:
            raise ValueError("no request")

        monkeypatch.setattr("voicepipe.ingress.sip.dialog.Dialog.send", fails)
        await pop.calls[1].line.hang_up()
        await until(lambda: pop.live == 1)
        before = len(ann.heard())
        await until(lambda: len(ann.heard()) > before + 5)
        assert (await ann.hang_up()).code == 200


async def test_nothing_is_sent_before_the_ack() -> None:
    async with calling(FakePop(sip())) as ann:
        ann.invite()
        ann.took(await ann.final("INVITE"))
        await asyncio.sleep(0.2)
        assert not ann.heard()
        ann.ack()
        await until(lambda: ann.heard())
        await ann.hang_up()


async def test_a_goodbye_before_the_ack() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.invite()
        ann.took(await ann.final("INVITE"))
        assert (await ann.hang_up()).code == 200
        await settled(pop)


@pytest.mark.parametrize(
    ("sound", "ours"),
    [("8.8.8.8", "198.51.100.7"), ("127.0.0.1", "127.0.0.1"), ("10.1.2.3", "127.0.0.1"), ("0.0.0.0", "127.0.0.1")],
)
async def test_past_a_proxy_of_our_own_sound_comes_by_the_public_address(
    sound: str, ours: str, without_ack: None
) -> None:
    """And without an ACK nothing is sent there."""
    pop = FakePop(sip(trunks=(TRUNK,), public_address="198.51.100.7"))
    async with calling(pop) as ann:
        proxy = [("Record-Route", f"<sip:127.0.0.1:{ann.port};lr>")]
        ann.invite(ann.sdp().replace("IN IP4 127.0.0.1", f"IN IP4 {sound}"), proxy)
        answer = await ann.final("INVITE")
        assert f"c=IN IP4 {ours}\r\n" in answer.body
        assert "@127.0.0.1:" in answer.header("contact")


async def test_short_names_of_headers() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        answer = await ann.dial(headers=[("k", "timer"), ("x", "90")])
        assert answer.header("session-expires") == "90;refresher=uac"
        ann.answers = False
        task = asyncio.create_task(pop.calls[0].line.transfer("sip:desk@127.0.0.1"))
        ann.answer(await ann.got("REFER"), "202 Accepted")
        ann.request("NOTIFY", [("o", "refer")], "SIP/2.0 200 OK\r\n", kind="message/sipfrag")
        assert (await ann.final("NOTIFY")).code == 200
        await asyncio.wait_for(task, 60)
        ann.answers = True
        await ann.hang_up()


async def test_who_hangs_up_before_the_transfer_is_taken_was_not_transferred() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        await ann.dial()
        ann.answers = False
        task = asyncio.create_task(pop.calls[0].line.transfer("sip:desk@127.0.0.1"))
        await ann.got("REFER")
        await ann.hang_up()
        await settled(pop)
        assert not task.done()
        task.cancel()


@pytest.mark.parametrize("text", ["tel:+4930", "tel:+4930;tag=1", "sips:a@b;tag=1", '"Ann" <sip:a@b;x=y>;tag=1'])
def test_addresses_in_every_form(text: str) -> None:
    assert Address.of(text).user in ("+4930", "a")


@pytest.mark.parametrize("text", ["<sip:a@b c>", "<sip:a@b\r\nX: y>", '<sip:a@"b>', "<http:>", "<//x>", ""])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(SipError):
        Address.of(text)
