"""HTTP requests to a PoP's own endpoints, as uvicorn hands them to the application: path, query, headers and body."""

import asyncio
from random import Random
from typing import Any

from starlette.applications import Starlette

from tests.fuzz.target import Target
from tests.ingress.fake_pop import FakePop
from voicepipe.base.errors import PopFull
from voicepipe.call_api import Tenant
from voicepipe.config import Config
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.telephony.telephony_http import Providers
from voicepipe.pop.pop_http import app
from voicepipe.rtp.transport import UdpNetwork

PATHS = (
    "/v1/realtime/client_secrets", "/v1/realtime/calls?model=clinic", "/v1/realtime/calls", "/v1/realtime/calls/rtc_1",
    "/v1/realtime/calls/rtc_1/hangup", "/v1/realtime/calls/rtc_1/refer", "/v1/realtime/calls/rtc_1/dtmf", "/v1/models",
    "/v1/realtime/ice-servers", "/v1/voices", "/v1/dashboard?minutes=5", "/v1/dashboard/turn?id=a", "/healthz",
    "/readyz",
    "/v1/nothing", "/v1/realtime",
)  # fmt: skip
FORM = (
    '--b\r\nContent-Disposition: form-data; name="sdp"\r\n\r\nv=0\r\n\r\n--b\r\n'
    'Content-Disposition: form-data; name="session"; filename="a"\r\n\r\n{"type":"realtime"}\r\n--b--\r\n'
)
JSON = "content-type: application/json\n\n"
SESSION = (
    '{"type":"realtime","model":"clinic","audio":{"output":{"voice":"de","speed":1.5}},'
    '"tools":[{"type":"function","name":"a"}]}'
)
BODIES = (
    JSON + '{"expires_after":{"anchor":"created_at","seconds":60},"session":' + SESSION + "}",
    JSON + '{"target_uri":"sip:ann@example.com"}',
    JSON + '{"digits":"12#"}',
    "content-type: application/sdp\n\nv=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
    "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n",
    "content-type: multipart/form-data; boundary=b\n\n" + FORM,
    "\n",
)
WORDS = tuple(
    word.encode()
    for word in "authorization: Bearer sk-a|content-length: 5|content-length: -1|transfer-encoding: chunked|origin: a|"
    "x-forwarded-for: 1.2.3.4|content-type: multipart/form-data|; boundary=|expect: 100-continue|host: evil|%00|%ff|..|"
    "?call_id=|sec-websocket-protocol: openai-insecure-api-key.ek_1|Content-Disposition: form-data; name=|--b--".split(
        "|"
    )
)
KEY = "authorization: Bearer sk-a\nhost: 127.0.0.1:8080\n"


class _Full(FakePop):
    """Takes no calls: what is asked is read and checked, and no connection is opened."""

    def __init__(self) -> None:
        super().__init__(Config(), {"sk-a": Tenant("a")})
        self.refuse = PopFull("All slots are taken.")


class _Door:
    """The application, made again now and then: that takes longer than a request, and keys that are made stay in it."""

    LASTS = 100

    def __init__(self) -> None:
        self._left = 0

    def __call__(self) -> Starlette:
        if not self._left:
            pop, calls = _Full(), Calls()
            self._application, self._left = app(pop, calls, UdpNetwork(), Providers(pop, calls)), self.LASTS
        self._left -= 1
        return self._application


_door = _Door()


def request(data: bytes) -> None:
    asyncio.run(_asked(_door(), data))


async def _asked(application: Starlette, data: bytes) -> None:
    """A first line "METHOD TARGET", headers, an empty line, and the body."""
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    if not path.startswith((b"/v1/", b"/healthz", b"/readyz")):
        path = b"/v1/" + path  # What is elsewhere are files, which threads read.
    named = [line.partition(b":") for line in lines]
    scope: dict[str, Any] = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
        "method": method.decode("latin-1").upper() or "GET", "path": path.decode(errors="replace"), "raw_path": path,
        "query_string": query, "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8080),
        "headers": [(name.strip().lower(), value.strip()) for name, _, value in named],
    }  # fmt: skip
    parts = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return parts.pop() if parts else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await application(scope, receive, send)  # type: ignore[arg-type]
    assert sent and 200 <= sent[0]["status"] < 600 and sent[0]["status"] != 500, f"answered with {sent[:1]}"
    assert asyncio.all_tasks() == {asyncio.current_task()}, "tasks stay behind"


def _seeds() -> list[bytes]:
    methods = ("GET", "POST", "DELETE")
    return [
        f"{methods[n % 3] if n % 2 else 'POST'} {path}\n{KEY}{BODIES[n % len(BODIES)]}".encode()
        for n, path in enumerate(PATHS * 3)
    ]


def _any_request(random: Random) -> bytes:
    method = random.choice(("GET", "POST", "POST", "DELETE", "PUT"))
    key = random.choice((KEY, KEY, "", "authorization: bearer\n", "authorization: Bearer ek_1\n"))
    return f"{method} {random.choice(PATHS)}\n{key}{random.choice(BODIES)}".encode()


TARGETS = (
    Target("http", "a request to the PoP's endpoints", request, _seeds, _any_request, WORDS, share=0.3, largest=16_384),
)
