"""Limits on what a client may put into a call: bytes of an item, of a conversation, of a session. Pure.

Lengths are those of UTF-8.
"""

from collections.abc import Iterable, Sequence

import msgspec

from voicepipe.call_api import Size
from voicepipe.config import LimitsConfig
from voicepipe.conversation.events import Item
from voicepipe.conversation.history import item_bytes, utf8_bytes
from voicepipe.ingress.realtime.session import Session, ToolJson
from voicepipe.ingress.wire_errors import WireError

SOUND_BYTES = 8 * 1024
"""Bytes of a session's `audio`, as JSON: formats, voice, recognition. Clients send some hundred."""
DELETE = "Delete items that are not needed any more."


def check_item(item: Item, have: Size, limits: LimitsConfig) -> None:
    """Raises WireError: it is too long, or there is no room for it beside what the conversation holds."""
    if have.items >= limits.items:
        raise WireError("invalid_value", f"The conversation is full: {limits.items} items. Delete some.", "item")
    size = _checked(item, limits, "item")
    full = f"The conversation is full: %s. {DELETE}"
    _check(have.bytes + size, limits.conversation_bytes, full, "item")


def check_room(have: Size, limits: LimitsConfig) -> None:
    """Raises WireError: the conversation has no room for one more reply."""
    _check(have.bytes, limits.conversation_bytes, f"The conversation is full: %s. {DELETE}")


def check_number(items: Sequence[object], limits: LimitsConfig) -> None:
    """Raises WireError: the input of a reply has more entries than a conversation may have."""
    if len(items) > limits.items:
        too_many = f"The input has {len(items)} items, and {limits.items} are taken at most. Leave some out."
        raise WireError("invalid_value", too_many, "response.input")


def check_input(items: Iterable[Item], limits: LimitsConfig) -> None:
    """Raises WireError: the input of a reply is too long."""
    size = sum(_checked(item, limits, f"response.input[{n}]") for n, item in enumerate(items))
    _check(
        size, limits.conversation_bytes, "The input is too long: %s. Leave out what is not needed.", "response.input"
    )


def check_session(session: Session, limits: LimitsConfig) -> None:
    """Raises WireError: a session's instructions and tools are too long, or its `audio` is."""
    check_words("session", session.instructions, session.tools, limits)
    # A voice's and a model's name, a prompt for the recogniser: all of it is sent again with each `session.updated`.
    said_of_sound = len(msgspec.json.encode(session.audio))
    too_long = "What the session says of its sound is too long: %s. Shorten its texts."
    _check(said_of_sound, SOUND_BYTES, too_long, "session.audio")


def check_words(what: str, instructions: str | None, tools: Iterable[ToolJson] | None, limits: LimitsConfig) -> None:
    """Check the instructions and tools of a "session" or a "response". Raises WireError: they are too long."""
    said, most = utf8_bytes(instructions or ""), limits.session_bytes
    _check(said, most, "The instructions are too long: %s. Shorten them.", f"{what}.instructions")
    described = len(msgspec.json.encode(tools)) if tools else 0
    together = "Instructions and tools are too long together: %s. Describe fewer tools, or in fewer words."
    _check(said + described, most, together, f"{what}.tools")


def _checked(item: Item, limits: LimitsConfig, param: str) -> int:
    size = item_bytes(item)
    too_long = "The item is too long: %s. Shorten it, or make it several items."
    _check(size, limits.item_bytes, too_long, param)
    return size


def _check(size: int, most: int, sentence: str, param: str | None = None) -> None:
    if size > most:
        raise WireError("invalid_value", sentence % f"{size} bytes of at most {most}", param)
