"""What the agent of `voicepipe new` can do."""

import threading
from collections.abc import Iterator
from http.server import HTTPServer

import httpx
import pytest

from voicepipe.starter.tools import Messages, opening_hours


@pytest.fixture
def webhook() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Messages)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield f"http://127.0.0.1:{server.server_port}/message"
    server.shutdown()
    serving.join()
    server.server_close()


def test_its_webhook_does_a_retry_no_second_time(webhook: str, capsys: pytest.CaptureFixture[str]) -> None:
    sent = {"name": "take_message", "arguments": {"who": "Ann", "message": "Call back."}}
    for key in ("a", "a", "b"):
        answer = httpx.post(webhook, json=sent, headers={"Idempotency-Key": key})
        assert answer.text == "The message has been written down."
    assert capsys.readouterr().out == "Ann says: Call back.\n" * 2


@pytest.mark.parametrize(
    ("day", "said"),
    [
        ("Sunday", "On Sunday we are closed."),
        ("next sunday", "On next sunday we are closed."),
        ("Monday", "On Monday we are open from nine to five."),
    ],
)
def test_its_function_knows_the_opening_hours(day: str, said: str) -> None:
    assert opening_hours(day) == said
