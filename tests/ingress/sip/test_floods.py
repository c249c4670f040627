"""Floods at the SIP port: who pays for them are those who send them, and no caller is kept out."""

import asyncio
import secrets
import time
from contextlib import AbstractContextManager
from typing import Any

import msgspec
import psutil
import pytest

from tests.attacks import sip_invites, sip_junk, sip_registers
from tests.attacks.sip_messages import STRANGERS, invite, message
from tests.attacks.target import Attack, Target
from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.sip.peer import SECONDS, Phone, Said, phone, sip
from tests.ingress.sip.test_sip_access import digest
from tests.support.waiting import until
from voicepipe.agent import Agent
from voicepipe.base.errors import Draining, PopFull, TenantFull
from voicepipe.call_api import CallSlot, Refusal, Tenant
from voicepipe.config import PopConfig
from voicepipe.config.phone_config import SipTrunk, SipUser
from voicepipe.ingress.sip import transactions
from voicepipe.ingress.sip.datagram_check import LONGEST, check_datagram
from voicepipe.ingress.sip.sip_access import SipAccess
from voicepipe.ingress.sip.sip_limits import SipLimits
from voicepipe.ingress.sip.transactions import Transactions

pytestmark = pytest.mark.slow

DESK = SipUser(name="desk", password_env="DESK_PASSWORD")
CARRIER = SipTrunk(name="carrier", addresses=("127.0.0.9",))
OTHER = SipTrunk(name="other", addresses=("127.0.0.8",))


@pytest.fixture(autouse=True)
def password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "s3cret")


async def insists(ann: Phone, sent: bytes) -> int:
    """Send this, again like every telephone until there is a final answer; its code."""
    this = Said.parse(sent)
    names = "call-id", "cseq"
    async with asyncio.timeout(SECONDS):
        while True:
            for said in ann.said:
                if said.code >= 200 and all(said.header(name) == this.header(name) for name in names):
                    ann.last = said  # type: ignore[attr-defined]
                    return said.code
            await asyncio.sleep(0.1)
            ann.send(sent)


async def logs_in_and_calls(ann: Phone) -> list[int]:
    codes = []
    for method in ("REGISTER", "INVITE"):
        body = ann.sdp() if method == "INVITE" else ""
        codes.append(await insists(ann, ann.request(method, (), body)))
        challenge = ann.last.header("www-authenticate")  # type: ignore[attr-defined]
        answer = digest(challenge, method, "sip:front@127.0.0.1")
        codes.append(await insists(ann, ann.request(method, [("Authorization", answer)], body)))
    ann.took(ann.last)  # type: ignore[attr-defined]
    ann.ack()
    return codes


@pytest.mark.parametrize(
    "attack", [sip_junk.ATTACK, sip_registers.ATTACK, sip_invites.ATTACK], ids=lambda one: one.name
)
async def test_a_flood_from_200_addresses_keeps_nobody_out(attack: Attack) -> None:
    """Neither who has a call, nor a trunk, nor who logs in for the first time."""
    pop = FakePop(sip(users=(DESK,), trunks=(CARRIER,)))
    async with serving(pop), phone(pop, "127.0.0.9") as trunk, phone(pop) as ann:
        await trunk.dial()
        target = Target("127.0.0.1", 1, sip_port=pop.config.sip.port)
        flooding = asyncio.ensure_future(attack.run(target, 3.0))
        await asyncio.sleep(1.0)
        assert await logs_in_and_calls(ann) == [401, 200, 401, 200]
        assert await insists(ann, ann.request("BYE")) == 200
        assert await insists(trunk, trunk.request("BYE")) == 200
        await flooding
        assert len(pop.calls) == 2 and not any(code.startswith("SIP/2.0 2") for code in target.told)


async def test_what_strangers_send_comes_to_no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def read(self: Transactions, text: str, *_: object) -> None:
        parsed.append(text)

    monkeypatch.setattr(Transactions, "handleIncoming", read)
    pop = FakePop(sip(users=(DESK,), trunks=(CARRIER,)))
    async with serving(pop), phone(pop) as eve:
        for number in range(10):
            for host in STRANGERS[:3]:
                eve.send(sip_junk.made(host, number))
                eve.send(sip_registers.made(host, number))
                eve.send(invite(host))
        eve.answer(await eve.final("INVITE"))
        assert not parsed
        async with phone(pop, "127.0.0.9") as trunk:
            trunk.request("OPTIONS")
            await until(lambda: parsed)


async def test_a_challenge_is_answered_where_it_was_sent() -> None:
    """So nobody guesses passwords, or makes us parse, in another's name."""
    pop = FakePop(sip(users=(DESK,)))
    async with serving(pop), phone(pop) as ann, phone(pop, "127.0.0.2") as eve:
        ann.request("REGISTER")
        challenge = (await ann.final("REGISTER")).header("www-authenticate")
        eve.request("REGISTER", [("Authorization", digest(challenge, "REGISTER", "sip:front@127.0.0.1"))])
        refused = await eve.final("REGISTER")
        assert refused.code == 401 and "stale=true" in refused.header("www-authenticate")


@pytest.mark.parametrize(
    "header",
    [
        "Record-Route: <sip:a>" + "".join(f";{n:x}" for n in range(140)),
        "Record-Route: <sip:a>" + ",<sip:a>" * 99,
        "Via: SIP/2.0/UDP a" + ",SIP/2.0/UDP a" * 99,
        "\r\n".join(["Record-Route: <sip:a>"] * 88),
        "Subject: x" + "\r\n " * 85,
        'Contact: "' + '"' * 7000 + "<sip:a@b>",
        "Contact: <sip:" + "%41" * 2300 + "@b>",
    ],
)
async def test_the_parsers_time_is_bounded(header: str) -> None:
    """Processor time, so that a busy machine does no harm."""
    pop = FakePop(sip())
    async with serving(pop), phone(pop) as ann:
        costs = message("OPTIONS", "127.0.0.1", [header])
        assert len(costs) <= LONGEST and (seen := check_datagram(costs)) and not seen.excessive
        before = time.thread_time()
        ann.send(costs)
        assert await insists(ann, message("OPTIONS", "127.0.0.1")) == 200
        assert time.thread_time() - before < 0.5, "it was seconds"


async def test_a_message_that_is_too_large_is_told_so() -> None:
    async with serving(pop := FakePop(sip())), phone(pop) as ann:
        ann.request("OPTIONS", [("Subject", "x" * LONGEST)])
        assert (await ann.final("OPTIONS")).code == 513


# --- who does not acknowledge


async def forge(eve: Phone, count: int) -> None:
    for _ in range(count):
        eve.call_id, eve.to_tag = secrets.token_hex(6), ""
        eve.request("INVITE", (), eve.sdp())
        await asyncio.sleep(0.01)


async def hang_all_up(eve: Phone, pop: FakePop) -> None:
    """Also those whose answers are still to come, and whose BYEs a busy PoP drops."""
    eve.answers = True
    async with asyncio.timeout(60):
        while pop.live:
            for call_id, tag in {(said.header("call-id"), said.header("to")) for said in eve.said if said.code == 200}:
                eve.call_id, eve.to_tag = call_id, tag.partition("tag=")[2]
                eve.request("BYE")
            await asyncio.sleep(0.5)


async def test_forged_invites_take_half_of_the_places_and_others_come_in(caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(sip(trunks=(CARRIER, OTHER)))
    most = pop.config.pop.slots // 2
    async with serving(pop), phone(pop, "127.0.0.9") as eve, phone(pop, "127.0.0.8") as ann:
        eve.answers = False
        async with asyncio.timeout(60):
            while (
                "has not acknowledged yet" not in caplog.text
            ):  # Those that a slow machine has no time for are dropped.
                await forge(eve, most // 2)
        assert pop.live == most
        await asyncio.sleep(1)  # What trunks may take of the time has come in again.
        answer = await ann.dial()
        assert answer.code == 200, "another trunk's call takes the place of one of theirs"
        assert (await ann.hang_up()).code == 200
        await forge(eve, 1)
        assert pop.live <= most and not eve.packets, "none of them ever began"
        await hang_all_up(eve, pop)


@pytest.mark.parametrize("ring_ms", [0, 5000])
async def test_where_the_pop_is_full_the_place_that_is_given_up_is_had_at_once(
    ring_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = sip(trunks=(CARRIER, OTHER), ring_ms=ring_ms)
    pop = FakePop(msgspec.structs.replace(config, pop=PopConfig(slots=2)))
    admit = pop.admit

    def admitted(tenant: Tenant, agent: Agent, replaced: CallSlot | None = None) -> AbstractContextManager[CallSlot]:
        if pop.live - bool(replaced) >= 2:
            raise PopFull("All 2 slots of this PoP are taken.")
        return admit(tenant, agent)

    monkeypatch.setattr(pop, "admit", admitted)
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 1.5)
    async with serving(pop), phone(pop, "127.0.0.9") as eve, phone(pop, "127.0.0.8") as ann:
        eve.answers = False
        await forge(eve, 2)
        await until(lambda: pop.live == 2)
        ann.invite()
        answer = await ann.got("INVITE", 180 if ring_ms else 200)
        assert pop.live == 2
        await (eve.got("INVITE", 503) if ring_ms else eve.got("BYE"))
        assert pop.refusals == ([Refusal("full", "sip", "local", "front-desk", 503)] if ring_ms else [])
        ann.took(answer)
        if ring_ms:
            for one in (ann, eve):
                one.request("CANCEL", seq=one.seq, branch=one.branch)
        else:
            ann.ack()
            assert (await ann.hang_up()).code == 200


CODEC = "v=0\r\no=ann 1 1 IN IP4 127.0.0.8\r\ns=-\r\nc=IN IP4 127.0.0.8\r\nt=0 0\r\nm=audio 4000 RTP/AVP 9999\r\n"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"body": CODEC}, 488),
        ({"contact": "<sip:x@b c>"}, 400),
        ({"refuse": Draining("This PoP is being shut down.")}, 503),
        ({"refuse": TenantFull("All 3 slots of the tenant are taken.")}, 486),
    ],
    ids=["no codec in common", "no address", "draining", "its tenant is full"],
)
async def test_who_is_refused_costs_nobody_a_place(change: dict[str, Any], code: int) -> None:
    pop = FakePop(sip(trunks=(CARRIER, OTHER)))
    most = pop.config.pop.slots // 2
    async with serving(pop), phone(pop, "127.0.0.9") as eve, phone(pop, "127.0.0.8") as ann:
        eve.answers = False
        await forge(eve, most)
        await until(lambda: pop.live == most)
        pop.refuse, ann.contact = change.get("refuse"), change.get("contact", "")
        assert await insists(ann, ann.invite(change.get("body"))) == code
        assert pop.live == most and not [said for said in eve.said if said.method == "BYE"]
        await hang_all_up(eve, pop)


async def test_refusals_that_nobody_acknowledges_take_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are remembered and sent again; the others are where their INVITE comes again."""
    monkeypatch.setattr(transactions, "MOST_DOUBTFUL", 5)
    kept = list[Transactions]()
    begin = Transactions.__init__

    def begun(self: Transactions, *args: Any) -> None:
        kept.append(self)
        begin(self, *args)

    monkeypatch.setattr(Transactions, "__init__", begun)
    pop = FakePop(sip(trunks=(CARRIER,)))
    pop.refuse = Draining("This PoP is being shut down.")
    async with serving(pop), phone(pop, "127.0.0.9") as eve, phone(pop, "127.0.0.9") as ann:
        invites = [invite("127.0.0.9") for _ in range(20)]
        for sent in invites:
            assert await insists(eve, sent) == 503
        assert len(kept[0].tserver) == 5
        assert (await ann.dial()).code == 503
        ann.ack()
        await until(lambda: len(kept[0].tserver) == 4)


async def test_who_gives_up_in_a_flood_is_told_so_more_than_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 487 may be lost. Nobody asks for it again: the CANCEL has had its own answer."""
    monkeypatch.setattr(transactions, "MOST_DOUBTFUL", 5)
    pop = FakePop(sip(trunks=(CARRIER,), ring_ms=int(SECONDS * 1000)))
    async with serving(pop), phone(pop, "127.0.0.9") as eve, phone(pop, "127.0.0.9") as ann:
        ann.invite()
        await ann.got("INVITE", 180)
        pop.refuse = Draining("This PoP is being shut down.")
        ann.request("CANCEL", seq=ann.seq, branch=ann.branch)
        await ann.got("INVITE", 487)
        await forge(eve, 20)
        await until(lambda: len([said for said in ann.said if said.code == 487]) == 3)
        ann.took(await ann.final("INVITE"))
        ann.ack()


async def test_who_never_acknowledges_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 0.7)
    pop = FakePop(sip())
    async with serving(pop), phone(pop) as eve:
        eve.invite()
        await eve.got("BYE")
        await settled(pop)
        answers = [said for said in eve.said if said.code == 200]
        await asyncio.sleep(1.0)
        assert len([said for said in eve.said if said.code == 200]) == len(answers), "nor is it sent our answer"
        assert not eve.packets


async def test_who_never_acknowledges_holds_no_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place that is lent has two sockets for its media: all are back once their time to acknowledge is over."""
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 1.5)
    pop, process = FakePop(sip()), psutil.Process()
    async with serving(pop), phone(pop) as one, phone(pop) as another:
        before = process.num_fds()
        for eve in (one, another):
            eve.invite()
        for eve in (one, another):
            await eve.final("INVITE")
        assert process.num_fds() >= before + 4
        await settled(pop)
        await until(lambda: process.num_fds() == before)


async def test_an_acknowledgement_that_comes_late_begins_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 5.0)
    pop = FakePop(sip())
    async with serving(pop), phone(pop) as ann:
        ann.invite()
        ann.took(await ann.final("INVITE"))
        await until(lambda: len([said for said in ann.said if said.code == 200]) == 3)
        assert not ann.packets
        ann.ack()
        await until(ann.heard)
        assert (await ann.hang_up()).code == 200


def test_one_sender_takes_nothing_of_the_time_that_others_have() -> None:
    """What is over its own limit was challenged and charged to all strangers first."""
    keeper = SipLimits(SipAccess(sip(users=(DESK,)).sip), lambda seen: False)
    asks = check_datagram(message("REGISTER", "127.0.0.66"))
    assert asks
    for number in range(20_000):
        now = number / 5000
        judged = keeper.judge(asks, "127.0.0.66", now)
        keeper.took(judged, 0.05)
    assert judged.refusal is None
    others = [keeper.judge(asks, f"127.0.1.{last}", now).refusal for last in range(100)]
    assert [refusal.code for refusal in others if refusal] == [401] * 100
