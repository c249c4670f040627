"""Calls whose addresses are telephone numbers, as mobile networks and trunks write them, or of other kinds."""

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import calling, phone, sip
from tests.support.waiting import until
from voicepipe.config import Config
from voicepipe.config.phone_config import RouteConfig, SipTrunk
from voicepipe.ingress.phone import find
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.header_text import SipError

TRUNK = SipTrunk(name="carrier", addresses=("127.0.0.0/8",))

ADDRESSES = [
    ("tel:+14155550111", "+14155550111"),
    ("<tel:+14155550111>", "+14155550111"),
    ('"Ann, \\"A\\" <x>" <tel:+1-415-555-0111;verstat=TN-Validation-Passed;npdi;rn=+1-212-555-0000>', "+14155550111"),
    ("<TEL:+1(415)555.0111;cpc=payphone;oli=70;isub=12%2F3>", "+14155550111"),
    ("<tel:7042;ext=9;phone-context=pbx.example>", "7042"),
    ("<tel:*31%23;phone-context=+49>", "*31#"),
    ("<sip:+1-415-555-0111;npdi;verstat=No-TN-Validation@carrier.example;user=phone>", "+14155550111"),
    ("<sip:415.555.0111;phone-context=+1@127.0.0.1;user=Phone;transport;ob>", "4155550111"),
    ("<sips:+14155550111:pass@[2001:db8::1]:5061;lr;x=>", "+14155550111"),
    ("Ann Lee<sip:front.desk-2@127.0.0.1>", "front.desk-2"),
    ("<sip:%2B14155550111@127.0.0.1>", "+14155550111"),
    ('O"Brien <sip:ann@127.0.0.1>', "ann"),
    ('"Ann <sip:ann@127.0.0.1>', "ann"),
    ('5" pipe "x" <sip:ann@127.0.0.1>', "ann"),
    ("<sip:john@corp.example@127.0.0.1>", "john@corp.example"),
    ("<sip:a@b@c:pass@127.0.0.1;x=y?subject=a@b>", "a@b@c"),
    ("<sip:John Smith@127.0.0.1>", "John Smith"),
    ("<sip:J\u00f6rg  M@127.0.0.1>", "J\u00f6rg  M"),
    ("<sip:a?b@127.0.0.1?subject=x@y>", "a?b"),
    ('"Anonymous" <sip:anonymous@anonymous.invalid>', "anonymous"),
    ("<sip:carrier.example>", ""),
    ("<urn:service:sos>", "service:sos"),
    ("<im:ann@example.com>", "ann@example.com"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "user"), ADDRESSES)
def test_what_an_address_says(written: str, user: str) -> None:
    assert Address.of(f"{written};tag=1").user == user
    assert Address.of(f"{written} ; x ; tag = 1").params == {"x": None, "tag": "1"}


@pytest.mark.parametrize(
    ("written", "host", "uri"),
    [
        ("sip:john@corp.example@pbx.example:5070", "pbx.example", "sip:john@corp.example@pbx.example:5070"),
        ("sip:John Smith@pbx.example;lr", "pbx.example", "sip:John%20Smith@pbx.example;lr"),
        ("sip:a@h.example;x=y@z", "h.example", "sip:a@h.example;x=y@z"),
        ("bob@h.example", "h.example", "sip:bob@h.example"),
    ],
)
def test_what_is_sent_back(written: str, host: str, uri: str) -> None:
    address = Address.of(f"<{written}>")
    assert (address.host, address.uri) == (host, uri)


def test_parameters_of_a_number_are_not_those_of_its_address() -> None:
    written = Address.of_uri("sip:7042;lr;phone-context=a.example;maddr=x@h.example;user=phone")
    assert not written.loose and written.uri_params == {"user": "phone"}
    assert written.user_params == {"lr": None, "phone-context": "a.example", "maddr": "x"}
    assert Address.of("<sip:h.example;LR>").loose


@pytest.mark.parametrize(
    ("written", "domain"),
    [
        ("tel:7042;phone-context=pbx.example", "pbx.example"),
        ("tel:7042;phone-context=+49", ""),
        ("tel:+49307042", ""),
        ("sip:7042;phone-context=pbx.example@h.example;user=phone", "h.example"),
    ],
)
def test_the_domain_that_a_route_may_name(written: str, domain: str) -> None:
    assert Address.of_uri(written).domain == domain


@pytest.mark.parametrize(
    "text", ["tel:", "tel:+1 415", "sip:", "sip:a@b:x", "sip:a@[2001:db8::1", "nothing", "1:2", "<tel:1"]
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(SipError, match="address"):
        Address.of_uri(text)


@pytest.mark.parametrize(("written", "user"), ADDRESSES)
async def test_a_call_from_whatever_address(written: str, user: str) -> None:
    """It is answered, changed and ended by both sides, and each message has the address as the caller wrote it."""
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.caller, ann.called = written, "<tel:+49-30-1234;npdi>"
        answer = await ann.dial(uri="tel:+49-30-1234;npdi")
        ours = f"{ann.called};tag={ann.to_tag}"
        assert (answer.code, answer.header("from"), answer.header("to")) == (200, f"{written};tag={ann.tag}", ours)
        origin = pop.calls[0].settings.origin
        assert (origin.caller, origin.called) == (user, "+49301234")
        for method in ("INVITE", "UPDATE", "OPTIONS"):
            after = len(ann.said)
            said = await ann.insisting(
                ann.request(method, body="" if method == "OPTIONS" else ann.sdp()), method, after
            )
            assert said.code == 200
            if method == "INVITE":
                ann.ack()
        await pop.calls[0].line.hang_up()
        goodbye = await ann.got("BYE")
        assert (goodbye.header("from"), goodbye.header("to")) == (ours, f"{written};tag={ann.tag}")
        assert goodbye.all("content-length") == ["0"]
        await settled(pop)


@pytest.mark.parametrize(("written", "user"), ADDRESSES[:5])
async def test_a_caller_with_such_an_address_gives_up(written: str, user: str) -> None:
    pop = FakePop(sip(ring_ms=60_000))
    async with calling(pop) as ann:
        ann.caller, ann.called = written, "<tel:+49301234;ext=5;phone-context>"
        ann.invite(uri="tel:+49301234")
        branch = ann.branch
        await ann.got("INVITE", 180)
        after = len(ann.said)
        ann.request("CANCEL", seq=ann.seq, branch=branch, uri="tel:+49301234", to_tag="")
        assert (await ann.final("CANCEL")).code == 200
        refused = await ann.final("INVITE", after)
        assert refused.code == 487
        ann.took(refused)
        ann.request("ACK", seq=ann.seq, branch=branch)
        await settled(pop)


@pytest.mark.parametrize("contact", ["<tel:+14155550111>", "tel:+1-415-555-0111"])
async def test_who_is_called_back_at_a_number_is_hung_up_where_it_speaks_from(contact: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.contact = contact
        assert (await ann.dial()).code == 200
        await pop.calls[0].line.hang_up()
        assert (await ann.got("BYE")).start == f"BYE {contact.strip('<>')} SIP/2.0"
        await settled(pop)


@pytest.mark.parametrize("tag", ["", "x", "a~b'c%41"])
async def test_a_from_needs_no_tag(tag: str) -> None:
    """RFC 3261, 12.1.1; RFC 4475, 3.4.1."""
    pop = FakePop(sip())
    async with calling(pop) as ann, phone(pop) as bob:
        for one in (ann, bob):
            one.tag = tag
            assert (await one.dial()).code == 200
        assert (await ann.hang_up()).code == 200
        await pop.calls[1].line.hang_up()
        assert (await bob.got("BYE")).header("to").partition(";tag=")[2] == tag
        await settled(pop)


@pytest.mark.parametrize("empty", [";tag", ";tag=", ";x=1; tag ;y"])
async def test_an_empty_tag_is_none(empty: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.called = f"<sip:front@127.0.0.1>{empty}"
        answer = await ann.dial()
        assert answer.code == 200
        assert [param for param in Address.of(answer.header("to")).params if param == "tag"] == ["tag"]
        ann.called = answer.header("to").rpartition(";tag")[0]
        assert (await ann.hang_up()).code == 200


async def test_who_is_asserted_is_the_first_with_a_user(caplog: pytest.LogCaptureFixture) -> None:
    asserted = '"A, B" <sip:carrier.example>, <im:>, "C" <tel:+1-415-555-0111;verstat=TN-Validation-Passed>'
    pop = FakePop(sip(trunks=(TRUNK,)))
    async with calling(pop) as ann:
        await ann.dial(headers=[("P-Asserted-Identity", asserted), ("Privacy", "id")])
        assert pop.calls[0].settings.origin.caller == "+14155550111"
        await ann.hang_up()


OFFICE = RouteConfig(called="+1 (415) 555.01*", agent="office")
ROUTES = [
    ("tel:+1-415-555-0100", OFFICE),
    ("tel:+1.415.555.0100;npdi;rn=+12125550000", OFFICE),
    ("sip:+1(415)555-0100;verstat=No-TN-Validation@127.0.0.1;user=phone", OFFICE),
    ("tel:4155550100;phone-context=+1", None),
    ("tel:+14155560100", None),
]


@pytest.mark.parametrize(("asked", "route"), ROUTES)
def test_a_route_sees_the_number_alone(asked: str, route: RouteConfig | None) -> None:
    address = Address.of_uri(asked)
    assert find([OFFICE], kind="sip", called=address.user, domain=address.domain) is route


async def test_a_local_number_is_one_of_its_domain() -> None:
    routes = RouteConfig(called="70*", domain="pbx.example"), RouteConfig(called="70*", domain="other.example")
    pop = FakePop(sip(msgspec.structs.replace(Config(), routes=routes[:1])))
    async with calling(pop) as ann:
        assert (await ann.dial(uri="tel:70-42;phone-context=pbx.example")).code == 200
        await ann.hang_up()
        ann.to_tag = ""
        assert (await ann.dial(uri="tel:70-42;phone-context=other.example")).code == 404


@pytest.mark.parametrize("uri", ["urn:service:sos", "im:front@127.0.0.1", "http://127.0.0.1/x", "x-y.z+1:front"])
@pytest.mark.parametrize("method", ["INVITE", "OPTIONS"])
async def test_what_cannot_be_called_is_said_to_be_so(method: str, uri: str, caplog: pytest.LogCaptureFixture) -> None:
    async with calling(FakePop(sip())) as ann:
        ann.request(method, uri=uri)
        assert (await ann.final(method)).start == "SIP/2.0 416 Unsupported URI Scheme"
    assert f"it asks for a {uri.partition(':')[0]}: address" in caplog.text


@pytest.mark.parametrize(
    ("contact", "why"),
    [("<urn:x:y>", "names no host"), ("<sip:ann@>", "names no host"), ("<sip:ann@h;x=a b>", "is no address")],
)
async def test_who_cannot_be_hung_up_is_told_why(contact: str, why: str, caplog: pytest.LogCaptureFixture) -> None:
    async with calling(FakePop(sip())) as ann:
        ann.contact = contact
        answer = await ann.dial()
        assert answer.code == 400 and why in answer.header("warning")
    assert why in caplog.text


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (b"CSeq: 1 INVITE\r\n", "two headers cseq"),
        (b"Content-Length: 9999\r\n", "should have 9999"),
        (b"no header\r\n", "is no header"),
        (b"Via: SIP/2.0 h\r\n", "cannot be read"),
    ],
)
async def test_a_request_that_cannot_be_read_is_told_why(
    wrong: bytes, why: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voicepipe.ingress.sip.sip_call.ACK_S", 0.1)  # For that of the readable one
    async with calling(FakePop(sip())) as ann:
        sent = ann.request("INVITE")
        first, _, rest = sent.partition(b"\r\n")
        ann.call_id += "2"
        lines = rest.replace(b"Content-Length: 0\r\n", b"").replace(b"Call-ID: ", b"Call-ID: x")
        ann.send(first + b"\r\n" + lines.replace(b"\r\n\r\n", b"\r\n" + wrong + b"\r\n"))
        refused = "SIP/2.0 400 Bad Request"
        await until(lambda: any(one.start == refused and why in one.header("warning") for one in ann.said))
    assert "refused with 400: " in caplog.text and why in caplog.text
