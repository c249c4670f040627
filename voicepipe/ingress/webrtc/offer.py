"""The offer of a WebRTC call as it comes by HTTP: SDP alone, or a form of `sdp` and `session`."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from typing import Any, NamedTuple

import msgspec
from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.formparsers import MultiPartException, MultiPartParser

from voicepipe.base.foreign_json import decode
from voicepipe.ingress.wire_errors import WireError

logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # errors in a form go to its sender

SDP = "application/sdp"
OFFER_BYTES = 64 * 1024
"""Bytes of a form besides its session; a browser's offer of sound has 5 kB."""
CHUNK_BYTES = 16 * 1024
"""Bytes of a form that are parsed at a time."""


class WebRtcOffer(NamedTuple):
    """A caller's offer."""

    sdp: str
    session: dict[str, Any]
    """The parts of the session that they ask for."""


async def read(headers: Headers, sent: bytes, most: int) -> WebRtcOffer:
    """The offer, with a session of `most` bytes at most. Raises WireError."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == SDP:
        return WebRtcOffer(sent.decode(errors="replace"), {})
    if kind != "multipart/form-data":
        raise WireError("invalid_value", f"Send the offer as {SDP}, or as multipart/form-data with the parts sdp and "
                        "session.", "content-type")  # fmt: skip
    try:
        form = await MultiPartParser(_boundary(headers), _chunks(sent), max_files=2, max_fields=4).parse()
    except MultiPartException as error:
        raise WireError("invalid_value", f"The form cannot be read: {error.message}", "content-type") from None
    parts = {name: await _text(form[name]) for name in ("sdp", "session") if name in form}
    await form.close()
    if "sdp" not in parts:
        raise WireError("missing_required_parameter", "The form has no part 'sdp'.", "sdp")
    session = (parts.get("session") or "{}").encode(errors="replace")
    if len(session) > most:
        too_long = f"The part 'session' is over {most} bytes, the most that is taken: shorten it."
        raise WireError("invalid_value", too_long, "session")
    try:
        return WebRtcOffer(parts["sdp"], decode(session, dict[str, Any]))
    except msgspec.DecodeError as error:
        raise WireError("invalid_json", f"The part 'session' is no JSON object: {error}.", "session") from None


def _boundary(headers: Headers) -> Headers:
    """The form's boundary, for its parser, without a charset: forms have none (RFC 7578, 5.1.2), and some that Python
    knows take seconds for a long text."""
    _, parameters = parse_options_header(headers["content-type"])
    boundary = parameters.get(b"boundary", b"").decode("latin-1")
    if not boundary or set(boundary) & {'"', "\\"}:
        raise WireError("invalid_value", "The form's content-type names no boundary of its parts.", "content-type")
    return Headers({"content-type": f'multipart/form-data; boundary="{boundary}"'})


async def _chunks(data: bytes) -> AsyncGenerator[bytes, None]:
    """The body in chunks: each is parsed in one step of the event loop."""
    for start in range(0, len(data), CHUNK_BYTES):
        yield data[start : start + CHUNK_BYTES]
        await asyncio.sleep(0)


async def _text(part: Any) -> str:
    return part if isinstance(part, str) else (await part.read()).decode(errors="replace")
