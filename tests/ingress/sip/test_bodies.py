"""The session description in a body: whole, one of several parts, packed, or not there."""

import base64
import quopri
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingress.fake_pop import FakePop, settled
from tests.ingress.sip.peer import Phone, calling, sip
from tests.support.waiting import until
from voicepipe.ingress.sip.bodies import (
    ACCEPT,
    DEEPEST,
    MOST_PARTS,
    UnsupportedBody,
    UnsupportedEncoding,
    session_description,
)
from voicepipe.ingress.sip.header_text import SipError

SDP = "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nt=0 0\r\nm=audio 40000 RTP/AVP 0\r\n"
ISUP = (
    b"Content-Type: application/isup;version=itu-t92+\r\nContent-Disposition: signal;handling=optional\r\n\r\n"
    b"\x01\x11H\x00\n\r\n\r\n\xff"
)
PIDF = b"Content-Type: application/pidf+xml\r\nContent-ID: <loc@example>\r\n\r\n<presence/>"
TEXT = b"\r\nplain text"
OTHER_SDP = SDP.replace("40000", "50000")


def sdp_part(more: str = "", content: bytes = SDP.encode(), kind: str = "Content-Type: application/sdp") -> bytes:
    return f"{kind}\r\n{more}\r\n".encode() + content


def joined(*parts: bytes, boundary: str = "b1", end: bytes = b"\r\n") -> bytes:
    line = b"--" + boundary.encode()
    return b"".join(line + end + part + end for part in parts) + line + b"--" + end


def read(body: bytes, kind: str = "multipart/mixed;boundary=b1", **headers: str) -> str | None:
    return session_description({"content-type": kind} | {k.replace("_", "-"): v for k, v in headers.items()}, body)


REQUIRED = "Content-Disposition: session;handling=required\r\n"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (SDP.encode(), "application/sdp"),
        (SDP.encode(), "Application/SDP ; charset=UTF-8"),
        (joined(sdp_part(REQUIRED), ISUP), "multipart/mixed;boundary=b1"),
        (joined(ISUP, PIDF, TEXT, sdp_part()), 'MULTIPART/Mixed ; Boundary="b1"'),
        (b"This is MIME.\r\n" + joined(PIDF, sdp_part()) + b"\r\nepilogue --b1", "multipart/mixed; boundary=b1"),
        (joined(sdp_part(), PIDF, end=b"\n"), "multipart/mixed;boundary=b1"),
        (joined(PIDF, sdp_part(kind="c:application/sdp")), "multipart/mixed;boundary=b1"),
        (joined(sdp_part(kind="CONTENT-TYPE:\r\n application/SDP;charset=utf-8")), "multipart/mixed;boundary=b1"),
        (joined(sdp_part(), TEXT, boundary="a b'(:?=/,.c"), "multipart/related; type=x;boundary=\"a b'(:?=/,.c\""),
        (joined(TEXT, sdp_part()), "multipart/unheard-of;boundary=b1"),
        (joined(sdp_part("Content-Transfer-Encoding: Base64\r\n", base64.encodebytes(SDP.encode()))),
         "multipart/mixed;boundary=b1"),
        (joined(sdp_part("Content-Transfer-Encoding: quoted-printable\r\n", quopri.encodestring(SDP.encode()))),
         "multipart/mixed;boundary=b1"),
        (joined(sdp_part("Content-Encoding: identity\r\nContent-Transfer-Encoding: 8BIT\r\n"), ISUP),
         "multipart/mixed;boundary=b1"),
        (joined(sdp_part("Content-Disposition: early-session;handling=optional\r\n", OTHER_SDP.encode()), sdp_part()),
         "multipart/mixed;boundary=b1"),
        (joined(sdp_part("Content-Encoding: gzip\r\nContent-Disposition: session;handling=optional\r\n"), sdp_part()),
         "multipart/mixed;boundary=b1"),
        (joined(ISUP, b"Content-Type: multipart/alternative;boundary=b2\r\n\r\n"
                + joined(TEXT, sdp_part(), boundary="b2")), "multipart/mixed;boundary=b1"),
        (joined(sdp_part(content=OTHER_SDP.encode()), sdp_part()), "multipart/alternative;boundary=b1"),
        (joined(sdp_part(), PIDF), "multipart/alternative;boundary=b1"),
        (joined(sdp_part(), b"Content-Type: application/new\r\n" + REQUIRED.encode() + b"\r\nx"),
         "multipart/alternative;boundary=b1"),
        (joined(sdp_part(), sdp_part("Content-Encoding: br\r\n", OTHER_SDP.encode())),
         "multipart/alternative;boundary=b1"),
    ],
)  # fmt: skip
def test_the_description_is_found(body: bytes, kind: str) -> None:
    found = read(body, kind)
    assert found is not None and found.splitlines() == SDP.splitlines()


@pytest.mark.parametrize(
    ("body", "kind", "disposition"),
    [
        (b"", "application/sdp", ""),
        (b"", "multipart/mixed", ""),
        (joined(ISUP, PIDF), "multipart/mixed;boundary=b1", ""),
        (b"\x01\x11H", "application/isup;version=itu-t92+", "signal;handling=optional"),
        (b"<xml/>", "text/xml", 'render ; Handling="Optional"'),
        (joined(TEXT, PIDF), "multipart/alternative;boundary=b1", ""),
    ],
)
def test_nothing_is_offered(body: bytes, kind: str, disposition: str) -> None:
    assert read(body, kind, content_disposition=disposition) is None


@pytest.mark.parametrize("headers", [{}, {"content-type": ""}])
def test_a_body_without_a_type_is_sdp(headers: dict[str, str]) -> None:
    assert session_description(headers, SDP.encode()) == SDP


@pytest.mark.parametrize("kind", ["", "application/sdp", "application/xml", "multipart/mixed;boundary=b1"])
@pytest.mark.parametrize("body", [b"", b"\r\n", b" \t\r\n\r\n"])
def test_a_body_of_blanks_is_none(kind: str, body: bytes) -> None:
    assert read(body, kind) is None


@pytest.mark.parametrize("end", [b"", b"\r\n", b"\r\n--b1", b"\r\n--b1\r\n", b"\r\n--b1-"])
@pytest.mark.parametrize("parts", [[sdp_part()], [ISUP, sdp_part()], [sdp_part(), PIDF], [TEXT, PIDF, sdp_part()]])
def test_the_last_part_needs_no_end(parts: list[bytes], end: bytes) -> None:
    found = read(joined(*parts).removesuffix(b"\r\n--b1--\r\n") + end)
    assert found is not None and found.startswith(SDP.strip())


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (b"<xml/>", "application/xml", "its body is application/xml, not the SDP"),
        (b"\x01", "application/ISUP;version=x", "its body is application/isup"),
        (SDP.encode(), "application/sdp;x=y", "its body is application/sdp (early-session)"),
        (joined(sdp_part(), ISUP.replace(b"optional", b"required")), "multipart/mixed;boundary=b1",
         "its part application/isup (signal) has to be understood"),
        (joined(b"Content-Type: multipart/mixed;boundary=b2\r\n\r\n"
                + joined(b"Content-Type: x/y\r\nContent-Disposition: render;handling=REQUIRED\r\n\r\n1", boundary="b2"),
                sdp_part()), "multipart/mixed;boundary=b1", "its part x/y (render)"),
        (joined(sdp_part("Content-Disposition: icon;handling=required\r\n")), "multipart/mixed;boundary=b1",
         "its part application/sdp (icon)"),
        (joined(b"Content-Type: x/y\r\nContent-Disposition: z;handling=required\r\n\r\n1"),
         "multipart/alternative;boundary=b1", "its part x/y (z)"),
    ],
)  # fmt: skip
def test_what_has_to_be_understood_and_is_not(body: bytes, kind: str, why: str) -> None:
    disposition = "early-session" if "early-session" in why else ""
    with pytest.raises(UnsupportedBody) as error:
        read(body, kind, content_disposition=disposition)
    assert str(error.value).startswith(why) and error.value.accept == ("Accept", ACCEPT)


@pytest.mark.parametrize(
    ("body", "kind", "encoding"),
    [
        (SDP.encode(), "application/sdp", "gzip"),
        (joined(sdp_part("Content-Encoding: deflate\r\n")), "multipart/mixed;boundary=b1", ""),
        (joined(sdp_part("e: x\r\n")), "multipart/mixed;boundary=b1", ""),
        (joined(sdp_part("Content-Transfer-Encoding: uuencode\r\n")), "multipart/mixed;boundary=b1", ""),
    ],
)
def test_what_is_packed(body: bytes, kind: str, encoding: str) -> None:
    with pytest.raises(UnsupportedEncoding) as error:
        read(body, kind, content_encoding=encoding)
    assert error.value.accept == ("Accept-Encoding", "identity")


def nested(depth: int) -> tuple[bytes, str]:
    body, kind = sdp_part(), "multipart/mixed;boundary=n0"
    for n in range(depth):
        body = f"Content-Type: multipart/mixed;boundary=n{n}\r\n\r\n".encode() + joined(body, boundary=f"n{n}")
    return joined(body, boundary="b1"), kind


@pytest.mark.parametrize(
    ("body", "kind", "why"),
    [
        (joined(sdp_part()), "multipart/mixed", "names no boundary"),
        (joined(sdp_part()), "multipart/mixed;boundary=", "names no boundary"),
        (joined(sdp_part()), "multipart/mixed;boundary=b2", "no line with the boundary 'b2'"),
        (SDP.encode(), "multipart/mixed;boundary=b1", "no line with the boundary"),
        (b"--b1--\r\n", "multipart/mixed;boundary=b1", "no parts"),
        (b"--b1\r\n" + SDP.encode() + b"\r\n--b1--", "multipart/mixed;boundary=b1", "is no header"),
        (joined(sdp_part(), sdp_part(content=OTHER_SDP.encode())), "multipart/mixed;boundary=b1", "two session"),
        (joined(*[TEXT] * (MOST_PARTS + 1)), "multipart/mixed;boundary=b1", "more than 32 parts"),
        (nested(DEEPEST)[0], "multipart/mixed;boundary=b1", "more than 4 deep"),
        (joined(sdp_part("Content-Transfer-Encoding: base64\r\n", b"a")), "multipart/mixed;boundary=b1", "base64"),
    ],
)
def test_what_is_broken(body: bytes, kind: str, why: str) -> None:
    with pytest.raises(SipError, match=why):
        read(body, kind)


def test_multiparts_may_be_nested() -> None:
    assert read(nested(DEEPEST - 1)[0]) == SDP.removesuffix("\r\n") + "\r\n"


@given(st.text(max_size=80), st.binary(max_size=400), st.text(max_size=40))
def test_any_body_is_read_or_refused(kind: str, body: bytes, more: str) -> None:
    for made in (body, joined(body), joined(more.encode() + b"\r\n\r\n" + body)):
        try:
            read(made, kind, content_disposition=more)
            read(made)
        except (SipError, UnsupportedBody):
            continue


@pytest.mark.parametrize(
    "body",
    [
        b"--b1\r\n" * 1300, b"\r\n--b1" * 1300, b"--b1\r\nContent-Type: multipart/mixed;boundary=b1\r\n\r\n" * 160,
        b"--b1\r\nx:" + b";" * 8000 + b"\r\n\r\n\r\n--b1--",
        b"--b1\r\nContent-Disposition: x" + b';"' * 4000 + b"\r\n--b1--",
        b"--b1\r\n" + b"a:\r\n" * 1900 + b"\r\n--b1--", b"\r" * 8000, b"\r\n " * 2700,
    ],
)  # fmt: skip
def test_no_body_takes_long(body: bytes) -> None:
    """Processor time, and twenty times what it is."""
    before = time.thread_time()
    with pytest.raises(SipError):
        if read(body) is None:
            raise SipError("it has none")
    assert time.thread_time() - before < 0.4


# --- in calls

ISUP_REQUIRED = ISUP.replace(b"optional", b"required")


def with_isup(phone: Phone, isup: bytes = ISUP, **more: str) -> str:
    return joined(isup.replace(b"\xff", b"\x7f"), sdp_part(content=phone.sdp(**more).encode())).decode()  # type: ignore[arg-type]


KIND = 'multipart/mixed;boundary="b1"'


async def test_every_request_may_bring_its_description_as_a_part() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        answer = await ann.dial(with_isup(ann), kind=KIND)
        assert answer.code == 200 and "m=audio" in answer.body
        ann.media_of(answer)
        await ann.talk(20, 10)
        await until(lambda: ann.loudest() > 0)
        for method in ("INVITE", "UPDATE"):
            after = len(ann.said)
            held = await ann.insisting(
                ann.request(method, body=with_isup(ann, direction="sendonly"), kind=KIND), method, after
            )
            assert held.code == 200 and "a=recvonly" in held.body
            if method == "INVITE":
                ann.ack()
        assert (await ann.hang_up()).code == 200
        await settled(pop)


async def test_an_answer_in_an_ack_may_be_a_part() -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.invite(ISUP.partition(b"\r\n\r\n")[2].replace(b"\xff", b"\x7f").decode(), kind="application/isup",
                   headers=[("Content-Disposition", "signal;handling=optional")])  # fmt: skip
        offer = await ann.final("INVITE")
        assert offer.code == 200 and "m=audio" in offer.body
        ann.took(offer)
        ann.request("ACK", (), with_isup(ann, formats="8 101"), seq=ann.seq, kind=KIND)
        ann.media_of(offer)
        await until(lambda: any(packet.payload_type == 8 for packet in ann.heard()))
        await ann.hang_up()


async def test_an_ack_that_requires_more_ends_the_call(caplog: pytest.LogCaptureFixture) -> None:
    pop = FakePop(sip())
    async with calling(pop) as ann:
        ann.invite("")
        ann.took(await ann.final("INVITE"))
        ann.request("ACK", (), with_isup(ann, ISUP_REQUIRED), seq=ann.seq, kind=KIND)
        await ann.got("BYE")
        await settled(pop)
    assert "application/isup (signal) has to be understood" in caplog.text


@pytest.mark.parametrize(
    ("isup", "kind", "status", "header"),
    [
        (ISUP_REQUIRED, KIND, 415, ("accept", ACCEPT)),
        (ISUP, "multipart/mixed;boundary=b7", 400, ("warning", "")),
        (ISUP, "application/x-unknown", 415, ("accept", ACCEPT)),
    ],
)
async def test_what_is_refused_is_refused_everywhere(
    isup: bytes, kind: str, status: int, header: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """And the call goes on as it was."""
    pop = FakePop(sip())
    async with calling(pop) as ann:
        refused = await ann.dial(with_isup(ann, isup), kind=kind)
        assert refused.code == status and header[1] in refused.header(header[0])
        ann.to_tag = ""
        assert (await ann.dial()).code == 200
        for method in ("INVITE", "UPDATE"):
            after = len(ann.said)
            said = await ann.insisting(ann.request(method, body=with_isup(ann, isup), kind=kind), method, after)
            assert said.code == status
            if method == "INVITE":
                ann.request("ACK", seq=ann.seq, branch=ann.branch)
        assert (await ann.hang_up()).code == 200
        await settled(pop)
    assert caplog.text.count(f"refused with {status}") == 3


async def test_what_may_be_sent_is_told() -> None:
    async with calling(FakePop(sip())) as ann:
        ann.request("OPTIONS")
        answer = await ann.final("OPTIONS")
        assert (answer.header("accept"), answer.header("accept-encoding")) == (ACCEPT, "identity")
