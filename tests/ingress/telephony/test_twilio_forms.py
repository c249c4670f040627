"""Forms that Twilio sends, and whether it has signed them."""

from urllib.parse import urlencode

import httpx
import pytest
from starlette.requests import HTTPConnection, Request
from twilio.request_validator import RequestValidator

from tests.ingress.fake_pop import serving
from tests.ingress.telephony.test_twilio import opened
from tests.ingress.telephony.twilio_provider import ENV, TOKEN
from voicepipe.ingress.telephony.signatures import Forbidden
from voicepipe.ingress.telephony.twilio_forms import FIELDS, VOICE, TwilioForm, address, parsed, signed_form


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
