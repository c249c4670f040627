"""Signatures, against Twilio's own validator and against the words of Telnyx's documentation."""

from base64 import b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from twilio.request_validator import RequestValidator

from voicepipe.ingress.telephony import signatures
from voicepipe.ingress.telephony.signatures import TOKEN_S, Forbidden, OneTimeTokens, telnyx, twilio

TOKEN = "12345"
PARAMS = [("To", "+18005551212"), ("From", "+14158675309"), ("CallSid", "CA1"), ("Digits", "1"), ("Digits", "0")]
SETTINGS = "X-Twilio-Webhooks-Signature-Settings"


class Multi(dict[str, list[str]]):
    """As web frameworks give forms, and the validator takes them."""

    def getlist(self, name: str) -> list[str]:
        return self[name]


def signed(url: str, params: list[tuple[str, str]] = [], algorithm: str | None = None) -> dict[str, str]:  # noqa: B006
    form = Multi()
    for name, value in params:
        form.setdefault(name, []).append(value)
    header = {"x-twilio-signature": RequestValidator(TOKEN).compute_signature(url, form, algorithm)}
    return header | ({SETTINGS.lower(): f"key=webhooks_sharedkey_1,algorithm={algorithm}"} if algorithm else {})


@pytest.mark.parametrize("algorithm", [None, "HMAC_SHA1", "HMAC_SHA256"])
@pytest.mark.parametrize("params", [[], PARAMS])
@pytest.mark.parametrize(
    ("by_twilio", "by_us"),
    [
        ("https://voice.example.com/twilio/voice?agent=a%20b", "https://voice.example.com/twilio/voice?agent=a%20b"),
        ("https://voice.example.com:443/twilio/voice", "https://voice.example.com/twilio/voice"),
        ("wss://voice.example.com/twilio/stream", "https://voice.example.com/twilio/stream"),
        ("wss://voice.example.com:443/twilio/stream", "https://voice.example.com:443/twilio/stream"),
        ("https://voice.example.com/twilio/stream", "ws://voice.example.com/twilio/stream"),
        ("https://voice.example.com:8443/twilio/voice", "https://voice.example.com:8443/twilio/voice"),
        ("https://[2001:db8::1]/twilio/voice", "https://[2001:db8::1]/twilio/voice"),
    ],
)
def test_what_twilio_signs(by_twilio: str, by_us: str, params: list[tuple[str, str]], algorithm: str | None) -> None:
    assert twilio(TOKEN, by_us, params, signed(by_twilio, params, algorithm)) == by_twilio


URL = "https://voice.example.com/twilio/voice"


@pytest.mark.parametrize(
    ("token", "url", "params", "headers", "why"),
    [
        (TOKEN, URL, PARAMS, {}, "has no x-twilio-signature"),
        ("67890", URL, PARAMS, signed(URL, PARAMS), "does not fit"),
        (TOKEN, URL, [*PARAMS, ("More", "1")], signed(URL, PARAMS), "does not fit"),
        (TOKEN, "https://other.example.com/twilio/voice", PARAMS, signed(URL, PARAMS), "does not fit"),
        (TOKEN, URL + "?agent=a", PARAMS, signed(URL, PARAMS), "does not fit"),
        (TOKEN, URL, PARAMS, signed(URL, PARAMS, "HMAC_SHA256") | {SETTINGS.lower(): ""}, "does not fit"),
        (TOKEN, URL, PARAMS, signed(URL, PARAMS) | {SETTINGS.lower(): "key=1,algorithm=MD5"}, "signed by 'MD5'"),
        (TOKEN, URL, PARAMS, {"x-twilio-signature": "\xe9"}, "does not fit"),
        (TOKEN, "https://[/twilio/voice", PARAMS, signed(URL, PARAMS), "which is none"),
    ],
)
def test_what_twilio_has_not_signed(
    token: str, url: str, params: list[tuple[str, str]], headers: dict[str, str], why: str
) -> None:
    with pytest.raises(Forbidden, match=why) as caught:
        twilio(token, url, params, headers)
    assert token not in str(caught.value)


KEY = Ed25519PrivateKey.generate()
PUBLIC = KEY.public_key()
BODY = b'{"data":{}}'
NOW = 1_700_000_000.0


def by_telnyx(body: bytes = BODY, stamp: str = "1700000000") -> dict[str, str]:
    signature = b64encode(KEY.sign(f"{stamp}|".encode() + body)).decode()
    return {"telnyx-signature-ed25519": signature, "telnyx-timestamp": stamp}


def test_what_telnyx_signs() -> None:
    telnyx(PUBLIC, BODY, by_telnyx(), NOW)
    telnyx(PUBLIC, BODY, by_telnyx(), NOW + 300)


@pytest.mark.parametrize(
    ("body", "headers", "now", "why"),
    [
        (BODY, {}, NOW, "has no telnyx-signature-ed25519"),
        (BODY + b" ", by_telnyx(), NOW, "does not fit"),
        (BODY, by_telnyx() | {"telnyx-timestamp": "1700000001"}, NOW, "does not fit"),
        (BODY, by_telnyx() | {"telnyx-timestamp": "yesterday"}, NOW, "is no time"),
        (BODY, by_telnyx() | {"telnyx-signature-ed25519": "!"}, NOW, "does not fit"),
        (BODY, by_telnyx(), NOW + 301, "signed 301 s ago"),
        (BODY, by_telnyx(), NOW - 301, "signed -301 s ago"),
    ],
)
def test_what_telnyx_has_not_signed(body: bytes, headers: dict[str, str], now: float, why: str) -> None:
    with pytest.raises(Forbidden, match=why):
        telnyx(PUBLIC, body, headers, now)


def test_a_token_opens_one_stream_once_and_soon() -> None:
    now = [5.0]
    tokens = OneTimeTokens[str](lambda: now[0])
    first, second, third = (tokens.make(name) for name in ("a", "b", "c"))
    assert tokens.take(second) == "b"
    now[0] += TOKEN_S - 1
    assert tokens.take(first) == "a"
    now[0] += 1
    for token in (first, third, "", "guess"):
        with pytest.raises(Forbidden):
            tokens.take(token)


def test_a_port_is_left_out_only_where_it_says_nothing() -> None:
    assert "https://a:8443/x" in set(signatures.spellings("https://a:8443/x"))
    assert "https://a/x" not in set(signatures.spellings("https://a:8443/x"))
