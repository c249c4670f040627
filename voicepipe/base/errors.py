"""Everything voicepipe raises on purpose, under one root.

Every message is one sentence for the person who reads it, and says what to do about it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

if TYPE_CHECKING:
    from asyncio import Future

Reason = Literal[
    "full",
    "late",
    "tenant_full",
    "draining",
    "engine_down",
    "no_port",
    "sender_full",
    "too_many_requests",
    "declined",
    "unauthorized",
    "forbidden",
    "bad_signature",
    "not_briefed",
    "no_route",
    "unknown_agent",
    "not_acceptable",
    "bad_request",
    "refused",
    "error",
]
"""Why a call is refused: a code for programs. "sender_full": a SIP trunk or user has all the calls that it may have;
"refused" and "error": for another reason of ours, and by a fault of ours. For people there is the error's text."""


def cause(error: BaseException) -> BaseException:
    """The first error, out of the groups in which tasks of tasks wrap it."""
    return cause(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


class VoicepipeError(Exception):
    """Root of all errors that voicepipe raises on purpose."""


class ConfigError(VoicepipeError):
    """A file or an option cannot be used; the text says file, key path and what is allowed."""


class EngineError(VoicepipeError):
    """An engine could not be loaded, or failed during a call."""


class EngineMissing(EngineError):
    """The library or the model behind an engine is not installed; the text says how to get it."""


class EngineBusy(EngineError):
    """No worker became free within the time that a call can wait."""


class OverQueued(EngineBusy):
    """A call itself has too many jobs waiting at an engine, which is well."""


class EngineStalled(EngineError):
    """The engine began to answer and then sent nothing more."""


class RequestRefused(EngineError):
    """The engine is well and refuses this request: its prompt is too long, or has a tool that it cannot read."""


class EngineDead(EngineError):
    """The engine does not work at present: it ended, hangs or fails. Its jobs are lost."""


class Refused(VoicepipeError):
    """A call or a request is refused."""

    reason: ClassVar[Reason] = "refused"


class Unauthorized(Refused):
    """The request has no key, a wrong key or an expired one."""

    reason = "unauthorized"


class Declined(Refused):
    """The agent's hook refuses this call; the text is its reason, for the log and for callers by HTTP. `sip_code`: the
    status for callers by SIP."""

    reason = "declined"

    def __init__(self, text: str, sip_code: int = 603) -> None:
        super().__init__(text)
        self.sip_code = sip_code


class PopFull(Refused):
    """Every slot of the PoP is taken."""

    reason: ClassVar[Reason] = "full"


class PopLate(PopFull):
    """One more call would be answered later than the latency budget, or while the event loop is late."""

    reason = "late"


class CallFull(Refused):
    """The call has as many clients as it may have."""


class TenantFull(PopFull):
    """The caller's tenant has as many calls as it may have, or as many that wait for their callers to connect, whatever
    the PoP has free."""

    reason = "tenant_full"


class Draining(Refused):
    """The PoP takes no new calls."""

    reason = "draining"


class EngineDown(Refused):
    """An engine ended, hangs or fails; until it is ready again the PoP takes no new calls."""

    reason = "engine_down"


class NoPort(Refused):
    """No network port is free for a call's sound."""

    reason = "no_port"


class TooManySecrets(Refused):
    """A tenant has as many short-lived keys as it may have at a time."""


class OverShare(Refused):
    """A key's HTTP requests took more of the event loop's time than its share."""

    reason = "too_many_requests"


class SessionMissing(Refused):
    """The session of a caller's `ek_` key has not come from the directory, which may be cut off from the bus."""

    reason = "not_briefed"


WhyNone = Literal["no_room", "none_answers", "no_match"]
"""Why no PoP can take a call: all that could are full; all that report were tried; none meets the requirements."""


class NoPop(Refused):
    """No PoP can take a call for which a directory was asked."""

    def __init__(self, text: str, why: WhyNone = "none_answers") -> None:
        super().__init__(text)
        self.why: WhyNone = why


class UnknownCall(Refused):
    """No call of this tenant's has this id."""


class RecordsFailing(Refused):
    """The file of records cannot be written at present; the request may still be carried out later."""


class UpgradeFailed(Refused):
    """No new process has taken over from this one, which goes on as before."""


class CallError(VoicepipeError):
    """A call cannot carry out a request. The call goes on."""


class InputEmpty(CallError):
    """There is no input to commit."""


class ItemExists(CallError):
    """The conversation has an item with this id already."""


class ItemUnknown(CallError):
    """The conversation has no item with this id."""


class ItemMismatch(CallError):
    """The item is not of the kind that the request needs."""


class ReplyActive(CallError):
    """A reply is already being made."""


class NoReply(CallError):
    """There is no reply to cancel."""


class TransferFailed(CallError):
    """The caller could not be transferred; the text says why, for the model and for a client."""


class KeysFailed(CallError):
    """Keys could not be sent to the far end; the text says why."""


class ToolError(VoicepipeError):
    """A tool failed; the text is for the model: short, true, and without internals."""


class OutcomeUnknown(ToolError):
    """A tool was begun, and its outcome is unknown: it took too long, or the connection to it broke."""

    def __init__(self, text: str, later: "Future[Callable[[], str]] | None" = None) -> None:
        super().__init__(text)
        self.later = later
        """Done once the tool is over: gives its result, or raises ToolError. Cancelled: it was stopped half-way."""


class ProbeError(VoicepipeError):
    """A probe call could not be placed or judged."""
