"""What one sender's messages cost everybody: the event loop's time, memory, and places. Times are the thread's own."""

import time
from contextlib import suppress
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import Phone, calling, phone, sip
from tests.ingress.sip.test_floods import CARRIER, OTHER
from tests.rtp.test_sdp import formats
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.header_text import SipError

RELAY = "application/dtmf-relay"


@pytest.mark.parametrize("body", ["\n" * 7600 + "x", "\r\n" * 3800 + "x", " " * 7600 + "x", "1" + " " * 7600 + "x"])
async def test_an_info_without_a_key_takes_no_time(body: str) -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        before = time.thread_time()
        ann.request("INFO", (), body, kind=RELAY)
        assert (await ann.final("INFO")).code == 400
        ann.request("OPTIONS")
        await ann.final("OPTIONS")
        assert time.thread_time() - before < 0.3, "it was 0.75 s"
        await ann.hang_up()


@pytest.mark.parametrize(
    "text",
    ['"' * 8000, "<" * 8000, '"<' * 4000, '"<>' * 2600, "<>" * 4000, "sip:" + "@" * 8000, "sip:" + "a@;" * 2600,
     "sip:" + " " * 7000 + "@h@", 'a"' + "<a" * 4000 + ">", "sip:" + "\u00fc " * 3500 + "@h"],
)  # fmt: skip
def test_no_address_takes_long(text: str) -> None:
    before = time.thread_time()
    with suppress(SipError):
        Address.of(text)
    assert time.thread_time() - before < 0.1


async def test_an_offer_with_more_formats_than_there_are_payload_types_is_refused_in_a_sentence() -> None:
    async with calling(FakePop(sip())) as ann:
        refused = await ann.dial(ann.sdp(formats=formats(129)))
        assert refused.code == 488 and "129 formats; at most 128 are read" in refused.header("warning")
        ann.to_tag = ""
        assert (await ann.dial(ann.sdp(formats=formats(128)))).code == 200
        assert (await ann.hang_up()).code == 200


# --- who cannot be hung up

UNREACHABLE = [
    ("Contact", "<sip:a@127.0.0.1:5070;x=\u00a0y>"),
    ("Contact", "<sip:a@h\u00a0b>"),
    ("Contact", '"=lr" <sip::@:;=tag=x>;tag=1.2.3.4'),
    ("Contact", "<sip:a@127.0.0.1\u2028>"),
    ("Record-Route", "<sip:127.0.0.1;x=\u00a0y>"),
    ("Record-Route", "<sip:p@q;\u00a0lr>"),
]


def say_where(odd: Phone, name: str, value: str) -> list[tuple[str, str]]:
    odd.contact = value if name == "Contact" else ""
    return [] if name == "Contact" else [(name, value)]


@pytest.mark.parametrize(("name", "value"), UNREACHABLE)
async def test_who_cannot_be_hung_up_has_no_call(name: str, value: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as odd:
        assert (await odd.dial(headers=say_where(odd, name, value))).code == 400
        assert not pop.calls


@pytest.mark.parametrize(("name", "value"), [one for one in UNREACHABLE if one[0] == "Contact"])
async def test_nor_has_who_cannot_be_after_a_change(name: str, value: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as odd:
        assert (await odd.dial()).code == 200
        odd.contact = value
        assert (await odd.dial()).code == 400
        odd.contact = ""
        assert (await odd.hang_up()).code == 200


@pytest.mark.parametrize(
    "contact",
    [
        '"J\u00fcrgen" <sip:ann@127.0.0.1:5070>',
        "<sip:j\u00fcrgen@127.0.0.1:5070>",
        '<sip:a%20b@127.0.0.1;transport=udp;x-y=%41~!*\'()>;+sip.instance="<urn:uuid:1>"',
        "<sip:ann@[2001:db8::1]:5070;ob>",
    ],
)
async def test_honest_contacts_are_taken(contact: str) -> None:
    assert Address.of(contact).uri.isascii()
    async with calling(FakePop(sip())) as ann:
        ann.contact = contact
        assert (await ann.dial()).code == 200
        await ann.hang_up()


async def test_a_call_that_cannot_say_goodbye_gives_way_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pop = FakePop(sip(trunks=(CARRIER, OTHER)))
    most = pop.config.pop.slots // 2

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("no request")

    async with serving(pop), phone(pop, "127.0.0.9") as eve, phone(pop, "127.0.0.8") as ann:
        eve.answers = False
        answers = []
        for number in range(most):
            eve.call_id, eve.to_tag = f"eve{number}", ""
            eve.invite()
            answers.append(await eve.final("INVITE", len(eve.said)))
        with monkeypatch.context() as patched:
            patched.setattr("voicepipe.ingress.sip.dialog.Dialog.send", fails)
            assert (await ann.dial()).code == 200
        assert "its BYE cannot be sent" in caplog.text
        await ann.hang_up()
        for answer in answers:  # Else we would wait for their ACKs.
            eve.call_id = answer.header("call-id")
            eve.took(answer)
            await eve.hang_up()
