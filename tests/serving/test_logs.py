"""The log: a line an event, with the call's id."""

import asyncio
import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest

from voicepipe.base.round_robin import owned_by
from voicepipe.config.pop_config import LogConfig
from voicepipe.serving import logs

CALL = "rtc_fra1.0c5e77aa91f2"
OTHER = "rtc_fra1.0c5e77aa91f3"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """The process's log, hooks and warnings."""
    root, hooks = logging.getLogger(), (sys.excepthook, threading.excepthook)
    yield
    for handler in [handler for handler in root.handlers if type(handler) is logging.StreamHandler]:
        root.removeHandler(handler)
    sys.excepthook, threading.excepthook = hooks
    logging.captureWarnings(False)


def configure(log: LogConfig, **server: str) -> None:
    """As for a command that has a process of its own: nobody else has a handler."""
    root = logging.getLogger()
    others = [handler for handler in root.handlers if type(handler) is not logging.StreamHandler]
    for handler in others:
        root.removeHandler(handler)
    logs.configure(log, **server)
    for handler in others:
        root.addHandler(handler)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_an_event_is_one_json_object(capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogConfig(format="json"), pop="fra1")
    log = logging.getLogger("voicepipe.ingress.calls")
    log.info("%s: ended after %.1f s (%s)", CALL, 4.25, "caller")
    [line] = lines(capsys)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "INFO",
        "logger": "voicepipe.ingress.calls",
        "message": f"{CALL}: ended after 4.2 s (caller)",
        "pop": "fra1",
        "call": CALL,
    }


def test_what_a_stranger_sends_makes_no_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger().handlers.clear()  # pytest's, which would send a half character to another process
    configure(LogConfig(format="json"), pop="fra1")
    log = logging.getLogger("voicepipe.ingress")
    log.warning("a call from %s", 'x"}\r\n{"level": "CRITICAL"}\u2028\x85\udc80')
    try:
        raise ValueError("two\nlines")
    except ValueError:
        log.exception("it failed")
    first, second = lines(capsys)
    assert first["message"].endswith('x"}\r\n{"level": "CRITICAL"}\u2028\x85\udc80')
    assert second["message"] == "it failed" and "ValueError: two\nlines" in second["exception"]


def test_libraries_warnings_and_deaths_are_in_it(capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogConfig(format="json"), pop="fra1")
    logging.getLogger("uvicorn.error").warning("odd", extra={"color_message": "red"})
    logging.getLogger("asyncio").info("not told")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    sys.excepthook(KeyError, KeyError("gone"), None)
    logs.report("my.toml: one\nmy.toml: two")
    said = lines(capsys)
    assert [line["level"] for line in said] == ["WARNING", "WARNING", "ERROR", "CRITICAL", "CRITICAL"]
    assert [line["logger"] for line in said] == ["uvicorn.error", "py.warnings"] + 3 * ["voicepipe"]
    assert "ZeroDivisionError" in said[2]["exception"] and "KeyError" in said[3]["exception"]
    assert said[4]["message"] == "my.toml: one\nmy.toml: two" and "color_message" not in said[0]


async def test_tasks_of_a_call_name_it(capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogConfig(format="json"), pop="fra1")
    log = logging.getLogger("voicepipe.call")

    async def task() -> None:
        await asyncio.sleep(0)
        log.warning("of a task")
        await asyncio.to_thread(log.warning, "of a thread")
        log.warning("%s: of another call", OTHER)

    with owned_by(CALL):
        job = asyncio.create_task(task())
    await job
    log.warning("of none")
    assert [line.get("call", "") for line in lines(capsys)] == [CALL, CALL, OTHER, ""]


def test_lines_for_people_name_the_call_once(capsys: pytest.CaptureFixture[str]) -> None:
    configure(LogConfig())
    log = logging.getLogger("voicepipe.call")
    with owned_by(CALL):
        log.info("a tool failed")
        log.info("%s: ended", CALL)
        log.debug("not told")
    log.info("of none")
    said = [line.partition(" INFO voicepipe.call: ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said == [f"{CALL}: a tool failed", f"{CALL}: ended", "of none"]
    logs.report("my.toml: wrong")
    assert capsys.readouterr().err == "voicepipe: my.toml: wrong\n"


def test_it_may_become_another_while_it_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("voicepipe.call")
    configure(LogConfig(level="error"))
    log.info("not told")
    configure(LogConfig(format="json"), pop="a")
    log.info("told")
    assert [line["message"] for line in lines(capsys)] == ["told"]
    configure(LogConfig())
    log.info("told")
    assert capsys.readouterr().err.endswith(" INFO voicepipe.call: told\n")
    assert sys.excepthook is sys.__excepthook__
