"""Stock clients of the Realtime convention, each in an environment of its own, hold the same call (see caller.py)."""

import base64
import json
import os
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import chromium
from tests.clients.caller import CONNECTED
from tests.clients.conftest import Secure, Site

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv-clients" / "bin" / "python"
CALL_S = 150
"""A call lasts 15 s; the programs give up after 90."""

Line = dict[str, Any]

TRUNCATED = {"conversation.item.truncated", "response.done"}
RETRIEVED = {"conversation.item.retrieved"}


@pytest.mark.parametrize(
    ("command", "events"),
    [
        ([PYTHON, "-m", "tests.clients.openai_agents"], TRUNCATED | RETRIEVED),
        (["node", "tests/clients/js/agents_websocket.mjs"], TRUNCATED | RETRIEVED),
        ([PYTHON, "-m", "tests.clients.livekit"], TRUNCATED),
        ([PYTHON, "-m", "tests.clients.pipecat"], set()),
        ([PYTHON, "-m", "tests.clients.pydantic_realtime"], set()),
    ],
    ids=["openai-agents", "@openai/agents over WebSocket", "LiveKit", "Pipecat", "Pydantic AI"],
)
def test_a_call(command: list[str | Path], events: set[str], site: Site, questions: list[Path]) -> None:
    hold([*command, site.url, *questions], events)
    hung_up(site.pop)


def test_a_call_by_openai_for_nodejs_over_tls(secure: Secure, questions: list[Path]) -> None:
    command: list[str | Path] = ["node", "tests/clients/js/openai_websocket.mjs", secure.url, *questions]
    hold(command, RETRIEVED, {**os.environ, "NODE_EXTRA_CA_CERTS": str(secure.certificate)})
    hung_up(secure.url, ssl.create_default_context(cafile=secure.certificate))


def hold(command: Sequence[str | Path], events: set[str], environment: Mapping[str, str] | None = None) -> None:
    """The call of one program."""
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=CALL_S, check=False
    )
    print(ended.stdout, ended.stderr[-3000:])  # pytest shows it if the test fails
    assert ended.returncode == 0
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    check(lines, events)
    assert interrupted_between_the_questions(lines)


def test_a_call_over_webrtc_from_another_origin(site: Site, origin: str, questions: list[Path]) -> None:
    lines: list[Line] = []

    def tell(line: Line) -> None:
        print(line)
        lines.append(line)

    spoken = [base64.b64encode(question.read_bytes()).decode() for question in questions]
    with chromium() as browser:
        page = browser.new_page()
        page.expose_function("tell", tell)
        page.goto(f"{origin}/agents_webrtc.html")
        call_id = page.evaluate("(call) => hold(call)", {"url": site.url, "key": secret(site.url), "questions": spoken})
        hung_up(site.pop)  # by the session's close(): the page is still there
    check(lines, TRUNCATED | RETRIEVED | {"output_audio_buffer.cleared"})
    assert call_id.startswith("rtc_"), "read from the header Location"


def check(lines: list[Line], events: set[str]) -> None:
    """The first answer was cut and is kept as far as it was heard; the tool was called and its result said."""
    seen = {kind: [line for line in lines if line["saw"] == kind] for kind in ("error", "heard", "tool", "history")}
    assert not seen["error"]
    assert len(seen["heard"]) == 2
    kept = seen["history"][-1]["items"]
    answer = next((text for text in kept if text.startswith("We are open")), "")
    assert answer and "closed" not in answer
    assert [line["to"] for line in seen["tool"]] == ["colleague"]
    assert CONNECTED in kept[-1]
    assert events <= {line["type"] for line in lines if line["saw"] == "event"}


def interrupted_between_the_questions(lines: list[Line]) -> bool:
    """Whether the library told its user to stop playing the answer to the first question."""
    saw = [line["saw"] for line in lines]
    first = saw.index("heard")
    return "interrupted" in saw[first : saw.index("heard", first + 1)]


def secret(url: str) -> str:
    """A browser's key, which its site's own server asks for."""
    request = urllib.request.Request(f"{url}/v1/realtime/client_secrets", method="POST", data=b"{}")
    with urllib.request.urlopen(request) as answer:
        return str(json.load(answer)["value"])


def hung_up(pop: str, tls: ssl.SSLContext | None = None) -> None:
    """The PoP has no call any more, within ten seconds."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with urllib.request.urlopen(f"{pop}/healthz", context=tls) as answer:
            if json.load(answer)["calls"] == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the client has gone, and its call is still there")
