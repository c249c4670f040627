"""Twilio's webhooks: who has signed a form, and what Twilio is told to do with a call."""

from urllib.parse import urlencode
from xml.etree.ElementTree import Element, fromstring

import httpx
import pytest
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from twilio.request_validator import RequestValidator

from tests.ingress.fake_pop import serving
from tests.ingress.telephony.test_twilio import opened
from tests.ingress.telephony.twilio_provider import ENV, TOKEN
from voicepipe.ingress.telephony.signatures import Forbidden
from voicepipe.ingress.telephony.twilio_webhook import (
    FIELDS,
    VOICE,
    TransferTarget,
    TwilioForm,
    address,
    dial,
    hang_up,
    parsed,
    reject,
    signed_form,
    stream,
)


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV, TOKEN)


async def test_what_nobody_has_signed_is_not_read_far() -> None:
    """Whoever floods us with large forms costs no time: to take one of a megabyte apart stops the loop."""
    async with serving(opened()) as address, httpx.AsyncClient(trust_env=False) as client:
        url = f"http://{address}/twilio/voice"
        large, many = b"a=b&" * 250_000, b"a=b&" * 600
        signature = {"X-Twilio-Signature": "x"}
        assert (await client.post(url, content=large)).status_code == 403
        assert (await client.post(url, content=large, headers=signature)).status_code == 400
        assert (await client.post(url, content=many, headers=signature)).status_code == 403


def asked(path: str = "/twilio/voice", query: bytes = b"", host: bytes = b"pop.example:8080") -> HTTPConnection:
    headers = [(b"host", host)] if host else []
    return HTTPConnection({"type": "http", "scheme": "http", "path": path, "query_string": query, "headers": headers})


@pytest.mark.parametrize(
    ("connection", "public_url", "url"),
    [
        (asked(), "", "http://pop.example:8080/twilio/voice"),
        (asked(query=b"agent=a&b=%ff"), "", "http://pop.example:8080/twilio/voice?agent=a&b=%ff"),
        (asked(), "https://voice.example.com/", "https://voice.example.com/twilio/voice"),
        (asked(query=b"agent=a"), "https://voice.example.com", "https://voice.example.com/twilio/voice?agent=a"),
        (asked(host=b""), "", "http:///twilio/voice"),
        (asked(host=b"["), "", "http://[/twilio/voice"),
    ],
)
def test_what_was_asked_is_as_it_was_signed(connection: HTTPConnection, public_url: str, url: str) -> None:
    assert address(connection, public_url) == url


def test_a_forms_fields_in_order_with_empty_ones() -> None:
    assert parsed(b"From=%2B49+30&To=&From=x&odd=\xff") == [("From", "+49 30"), ("To", ""), ("From", "x"),
                                                           ("odd", "\ufffd")]  # fmt: skip


def test_a_form_has_so_many_fields_and_no_more() -> None:
    assert len(parsed(b"&".join([b"a=b"] * FIELDS))) == FIELDS
    with pytest.raises(Forbidden, match=f"it has over {FIELDS} fields"):
        parsed(b"&".join([b"a=b"] * (FIELDS + 1)))


async def webhook(body: bytes, signature: str | None) -> tuple[TwilioForm, int]:
    """What is made of it, and how often its body was read."""
    headers = [
        (b"host", b"pop.example"),
        *([(b"x-twilio-signature", signature.encode())] if signature is not None else []),
    ]
    request = Request({"type": "http", "scheme": "https", "path": VOICE, "query_string": b"", "headers": headers})
    reads = 0

    async def read(request: Request) -> bytes:
        nonlocal reads
        reads += 1
        return body

    try:
        return await signed_form(request, TOKEN, "", read), reads
    except Forbidden:
        assert reads == (signature is not None), "what is not signed at all is not even read"
        raise


async def test_a_form_that_twilio_has_signed_is_read() -> None:
    fields = {"CallSid": "CA1", "From": "+49 30"}
    signature = RequestValidator(TOKEN).compute_signature(f"https://pop.example{VOICE}", fields)
    body = urlencode(fields).encode()
    form, _ = await webhook(body, signature)
    assert (form.fields, form.url, form.raw) == (fields, f"https://pop.example{VOICE}", body)


@pytest.mark.parametrize("signature", [None, "", "bm9wZQ=="])
async def test_one_that_it_has_not_is_forbidden(signature: str | None) -> None:
    with pytest.raises(Forbidden):
        await webhook(b"CallSid=CA1", signature)


def verb(answer: Response) -> Element:
    document = bytes(answer.body).decode()
    root = fromstring(document)
    assert root.tag == "Response" and len(root) == 1 and document.startswith('<?xml version="1.0" encoding="UTF-8"?>')
    assert answer.media_type == "text/xml"
    return root[0]


@pytest.mark.parametrize("reason", ["busy", "rejected"])
def test_a_call_that_is_not_answered(reason: str) -> None:
    said = verb(reject(reason))  # type: ignore[arg-type]
    assert (said.tag, said.attrib) == ("Reject", {"reason": reason})


def test_a_call_is_streamed_with_what_its_stream_is_to_say() -> None:
    given = {"voicepipe": 'a"b<c>&d', "from": "+4930", "empty": ""}
    said = verb(stream("wss://pop.example/twilio/stream?a=1&b=2", given, "https://pop.example/after?x=1&y=2"))
    assert (said.tag, said.get("action")) == ("Connect", "https://pop.example/after?x=1&y=2")
    [streamed] = said
    assert (streamed.tag, streamed.get("url")) == ("Stream", "wss://pop.example/twilio/stream?a=1&b=2")
    assert {one.get("name"): one.get("value") for one in streamed} == {"voicepipe": 'a"b<c>&d', "from": "+4930"}


@pytest.mark.parametrize(
    ("target", "tag", "text"),
    [
        ("+49 (30) 12-34", "Number", "+49301234"),
        ("tel:+1-415-555-0123", "Number", "+14155550123"),
        ("sip:a@b.example?x=1&y=<2>", "Sip", "sip:a@b.example?x=1&y=<2>"),
        ("sips:a@b.example", "Sip", "sips:a@b.example"),
    ],
)
def test_whom_a_caller_is_put_through_to(target: str, tag: str, text: str) -> None:
    said = verb(dial(TransferTarget(target, 25), "https://pop.example/after"))
    assert (said.tag, said.attrib) == ("Dial", {"timeout": "25", "action": "https://pop.example/after"})
    assert (said[0].tag, said[0].text) == (tag, text)


def test_a_call_is_ended() -> None:
    assert verb(hang_up()).tag == "Hangup"
