"""A PoP that keeps thousands of calls finds them at once, and its memory does not grow by it. Bounds are generous:
`python -m tests.records.many` measures."""

from pathlib import Path

import pytest

from tests.records.many import measured, pop

pytestmark = pytest.mark.e2e


def test_thousands_of_calls_are_listed_and_opened_at_once(tmp_path: Path) -> None:
    with pop(tmp_path, 2000) as url:
        figures = measured(url)
    assert figures["list_ms"] < 2000 and figures["open_ms"] < 2000
    assert figures["memory_after_mb"] < figures["memory_before_mb"] + 30
