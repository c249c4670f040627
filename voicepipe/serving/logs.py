"""The log on standard error: lines for people, or one JSON object a line. Each line about a call has its id.

The id comes from the task in which an event is logged (`round_robin.owner`), or from the event itself, where the work
is done by a thread or a job of all calls.
"""

import logging
import sys
import threading
import time
from types import TracebackType

from pythonjsonlogger.json import JsonFormatter

from voicepipe.base.call_ids import pop_of
from voicepipe.base.round_robin import owner
from voicepipe.config.pop_config import LogConfig

logger = logging.getLogger("voicepipe")
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
FIELDS = {"asctime": "time", "levelname": "level", "name": "logger", "message": "message", "exc_info": "exception"}
"""Fields of a record, and their names in JSON."""


def configure(log: LogConfig, **server: str) -> None:
    """Log as this says, from now on; may be called again. `server`: a field by which lines of several servers are told
    apart in JSON, as `pop="fra1"`."""
    root = logging.getLogger()
    if not root.handlers:
        root.addHandler(logging.StreamHandler())
    is_json = log.format == "json"
    for handler in _ours():
        handler.setFormatter(CallJsonFormatter(server) if is_json else CallTextFormatter(TEXT))
    logger.setLevel(log.level.upper())
    logging.captureWarnings(is_json)
    sys.excepthook = _died if is_json else sys.__excepthook__
    threading.excepthook = _thread_died if is_json else threading.__excepthook__


def report(error: str) -> None:
    """Tell why the command ends, on standard error: as the log is written, or for people where there is none."""
    if _is_json():
        logger.critical("%s", error)
    else:
        print(f"voicepipe: {error}", file=sys.stderr)


def _ours() -> list[logging.Handler]:
    """The handlers that write to standard error, and none of a program that runs a command within itself."""
    return [handler for handler in logging.getLogger().handlers if type(handler) is logging.StreamHandler]


def _is_json() -> bool:
    return any(isinstance(handler.formatter, CallJsonFormatter) for handler in _ours())


def _died(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logger.critical("the process ends by an error of its own", exc_info=(kind, error, trace))


def _thread_died(args: threading.ExceptHookArgs) -> None:
    if args.exc_value:
        logger.error("a thread ended by an error of its own", exc_info=args.exc_value)


def call_of(record: logging.LogRecord) -> str:
    """The id of the call that an event is about; empty: none. To be asked where it was logged."""
    said = record.args if isinstance(record.args, tuple) else ()
    return next((arg for arg in said if isinstance(arg, str) and pop_of(arg)), "") or owner()


class CallTextFormatter(logging.Formatter):
    """Lines for people: a line whose text does not name its call begins with the call's id."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        call = call_of(record)
        if call and call not in record.message:
            record.message = f"{call}: {record.message}"
        return super().formatMessage(record)


class CallJsonFormatter(JsonFormatter):
    """JSON objects (RFC 8259), one a line: line ends within texts are escaped. `server` are fields of every line."""

    def __init__(self, server: dict[str, str]) -> None:
        super().__init__(("asctime", "levelname", "name", "message"), rename_fields=FIELDS, static_fields=server)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """The time as RFC 3339 has it, in UTC, with milliseconds."""
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"

    def process_log_record(self, log_data: dict[str, object]) -> dict[str, object]:
        """Only the fields that are documented: libraries add others of their own."""
        known = (*FIELDS.values(), "stack_info", *self.static_fields, "call")
        return {name: log_data[name] for name in known if name in log_data}

    def add_fields(
        self, log_data: dict[str, object], record: logging.LogRecord, message_dict: dict[str, object]
    ) -> None:
        super().add_fields(log_data, record, message_dict)
        log_data.pop("call", None)
        if call := call_of(record):
            log_data["call"] = call
