"""Events out of a response's bytes."""

import pytest

from tests.engines.llm.test_openai_costs import spent
from voicepipe.engines.llm.event_stream import EventStream

SMALL_S = 0.6


@pytest.mark.parametrize("piece", [b"x", b"x" * 50])
def test_a_line_in_tiny_pieces(piece: bytes) -> None:
    lines = EventStream()
    assert spent(lambda: [list(lines.feed(piece)) for _ in range(20_000)]) < SMALL_S


def test_lines_in_any_pieces() -> None:
    body = b"data: a\r\n\n: b\ndata:c\n\ndata: d\n"
    for step in range(1, len(body)):
        lines = EventStream()
        assert [event for at in range(0, len(body), step) for event in lines.feed(body[at : at + step])] == [
            b"a", b"c", b"d"
        ]  # fmt: skip
