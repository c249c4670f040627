"""The texts of errors for callers, their clients and the model. Only this file decides what they may read.

Errors are written for whoever runs the PoP: they name model servers, files, environment variables, and what somebody's
code raised. None of that may reach the wire, and the model says aloud what it reads. The log has all of it, under an id
that the client's text quotes. Whose key it is makes no difference: who runs the PoP has its log.

Use `shown` for whatever leaves in an event or an HTTP body, and `spoken` for what a model reads, as a tool's result.
"""

import logging
import secrets

from voicepipe.base.errors import (
    CallError,
    EngineBusy,
    EngineDead,
    EngineError,
    EngineStalled,
    NoPort,
    Refused,
    RequestRefused,
    ToolError,
    VoicepipeError,
)

log = logging.getLogger(__name__)

_WRITTEN_FOR_THEM: tuple[type[Exception], ...] = (Refused, CallError, ToolError)
"""Errors whose texts are written for callers, clients or the model, and are shown unchanged."""

_SAID: tuple[tuple[type[BaseException], str], ...] = (
    (NoPort, "This server has no network port left for a call's sound; try again later, or another one."),
    (EngineBusy, "This server has more to do than it can at the moment; try again."),
    (EngineStalled, "A part of this server began to answer and then sent nothing more; try again."),
    (EngineDead, "A part of this server does not work at present; try again soon."),
    (RequestRefused, "The language model does not take this request; shorten the conversation, or look at its tools."),
    (EngineError, "A part of this server failed; try again."),
)
"""The texts for other errors: the first that fits. Subclasses stand before their parents."""
_FAILED = "This server failed."


def shown(error: BaseException, doing: str) -> str:
    """The text of `error` for a client; the rest goes to the log. `doing`: what failed, as "reply resp_1"."""
    text = _public(error)
    return str(error) if text is None else f"{text} (Its log knows this error as {_logged(error, doing)}.)"


def spoken(error: BaseException, doing: str) -> str:
    """The text of `error` for a model, which may read it out to the caller: as `shown`, without the id."""
    text = _public(error)
    if text is None:
        return str(error)
    _logged(error, doing)
    return text


def _public(error: BaseException) -> str | None:
    """The text for errors of this kind. None: the error's own."""
    for kind, text in _SAID:
        if isinstance(error, kind):
            return text
    return None if isinstance(error, _WRITTEN_FOR_THEM) else _FAILED


def _logged(error: BaseException, doing: str) -> str:
    """The id of the error in the log."""
    number = secrets.token_hex(4)
    # What we raise says all in its words; a traceback would keep the call alive where a log keeps its records.
    trace = None if isinstance(error, VoicepipeError) else error
    log.error("%s failed (error %s): %s", doing, number, str(error) or type(error).__name__, exc_info=trace)
    return number
