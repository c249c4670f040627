"""Forms that bring an offer and a session, however they are written."""

import pytest
from starlette.datastructures import Headers

from tests.support.stopwatch import watched
from voicepipe.ingress.webrtc import offer
from voicepipe.ingress.wire_errors import WireError

MOST = 512 * 1024


def form(**parts: bytes) -> bytes:
    head = b'--b\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    return b"".join(head % (name.encode(), value) for name, value in parts.items()) + b"--b--\r\n"


def headers(parameters: str = "boundary=b") -> Headers:
    return Headers({"content-type": f"multipart/form-data; {parameters}"})


@pytest.mark.parametrize("charset", ["punycode", "idna", "undefined", "utf-16", "no-such-charset", "utf-7"])
async def test_a_forms_charset_is_passed_over(charset: str) -> None:
    """RFC 7578 has none. Of a long text punycode took 8 s and more, and "undefined" was answered with 500."""
    slow = b"a" * 285_000
    async with watched() as longest:
        sent = form(sdp=slow + b"-" + slow, session=b"{}")
        sdp, _ = await offer.read(headers(f"boundary=b; charset={charset}"), sent, MOST)
    assert len(sdp) == 570_001
    assert longest.step_s < 0.5


async def test_a_form_is_read_in_steps() -> None:
    async with watched() as longest:
        with pytest.raises(WireError, match="form"):
            await offer.read(headers(), b"--b" + b" " * 570_000 + b"\r\n" + form(session=b"{}")[5:], MOST)
    assert longest.step_s < 0.1


async def test_what_is_no_utf_8_is_taken_as_it_can_be() -> None:
    assert (await offer.read(headers(), form(sdp=b"v=\xff"), MOST))[0].startswith("v=")


@pytest.mark.parametrize("parameters", ["", "boundary=", 'boundary="a\\"b"', "charset=utf-8"])
async def test_a_form_without_a_boundary_is_the_clients_mistake(parameters: str) -> None:
    with pytest.raises(WireError, match="boundary"):
        await offer.read(headers(parameters), form(sdp=b"v=0"), MOST)
