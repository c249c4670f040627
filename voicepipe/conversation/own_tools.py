"""Tools by which a model transfers its caller to a person, changes the language, presses keys, or hangs up; and whom a
caller can be transferred to: a telephone number as people write it, or a sip:, sips: or tel: address."""

import re
from collections.abc import Sequence

import msgspec

from voicepipe.agent import Agent, ToolSpec
from voicepipe.base.errors import ToolError, TransferFailed
from voicepipe.languages.tags import english_name

TRANSFER_TOOL = "transfer_call"
END_CALL = "end_call"
END_CALL_TOOL = ToolSpec(
    END_CALL,
    "Hang up. Only once the caller has made clear that they want nothing else; say goodbye in the same reply.",
    {"type": "object", "properties": {}},
)
"""The tool for hanging up, as the model is offered it."""
SEND_KEYS = "send_keys"
MOST_KEYS = 32
"""Keys and pauses of one call of `send_keys`."""
_KEYS = re.compile(rf"(?=.*[0-9*#A-D])[0-9*#A-DwW]{{1,{MOST_KEYS}}}")
SEND_KEYS_TOOL = ToolSpec(
    SEND_KEYS,
    "Press keys on the telephone, for an automatic system on the other side that asks for them. Write all keys of one "
    "entry in one call. Nobody has to be told: call it without a word. Afterwards listen, and write nothing unless the "
    "other side needs an answer in words.",
    {
        "type": "object",
        "required": ["keys"],
        "additionalProperties": False,
        "properties": {
            "keys": {
                "type": "string",
                "pattern": "^[0-9*#A-DwW]+$",
                "minLength": 1,
                "maxLength": MOST_KEYS,
                "description": "0 to 9, *, #, A to D; w is a pause of half a second, W of one second: 1w2#",
            }
        },
    },
)
"""The tool for pressing keys, as the model is offered it."""
SET_LANGUAGE = "set_language"
KEYS_SENT = "sent"
"""The result of keys that were all sent."""
KEYS_ALONE = "not sent, since other tools were called with it: call send_keys alone, once, with all keys"
KEYS_INTERRUPTED = "not sent: the other side interrupted what you said before"
_DIGITS = r"\+?[0-9*#(][0-9*#()./ -]{0,40}"
"""A number, and what people write into it to read it."""
_ADDRESS = r"[!#-;=?-~]{1,250}"
"""Nothing that could end a header or an element."""
_TARGET = re.compile(rf"{_DIGITS}|tel:{_DIGITS}(;{_ADDRESS})?|sips?:{_ADDRESS}", re.IGNORECASE)
_FILLERS = str.maketrans("", "", "()./ -")


class _TransferArguments(msgspec.Struct):
    """The arguments of `transfer_call`."""

    to: str


class _LanguageArguments(msgspec.Struct):
    """The arguments of `set_language`."""

    language: str


class _KeysArguments(msgspec.Struct):
    """The arguments of `send_keys`."""

    keys: str


def keys_to_send(arguments: str) -> str:
    """The keys that the model wants to be sent. Raises ToolError, whose text says how to write them."""
    try:
        keys = msgspec.json.decode(arguments, type=_KeysArguments).keys
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        keys = ""
    if not _KEYS.fullmatch(keys):
        raise ToolError(
            f"not sent: `keys` must be a text of 1 to {MOST_KEYS} of 0 to 9, *, #, A to D, w (a pause of half a "
            "second) and W (one second), with a key among them"
        )
    return keys


def set_language_tool(languages: Sequence[str]) -> ToolSpec:
    """The tool by which the model changes the language. `languages`: those of the agent."""
    names = ", ".join(f"{tag}: {english_name(tag) or tag}" for tag in languages)
    return ToolSpec(
        SET_LANGUAGE,
        f"Go on in another language ({names}), when the caller asks for it. What they speak is noticed without this. "
        "Call nothing else with it, and then answer in that language.",
        {
            "type": "object",
            "required": ["language"],
            "properties": {"language": {"type": "string", "enum": list(languages)}},
        },
    )


def language_wanted(arguments: str, languages: Sequence[str]) -> str:
    """The one of `languages` that the model wants to speak. Raises ToolError, whose text says which there are."""
    try:
        asked = msgspec.json.decode(arguments, type=_LanguageArguments).language
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        asked = ""
    if asked not in languages:
        raise ToolError(f"`language` must be one of: {', '.join(languages)}")
    return asked


def language_set(tag: str) -> str:
    """The result of `set_language`, as the model reads it."""
    return f"The language is {english_name(tag) or tag} now. Answer the caller in it."


def partly_sent(keys: str, sent: str, why: str) -> str:
    """The result of keys of which only some were sent, as the model reads it."""
    left = keys[len(sent) :]
    return f'Error: {why}: "{sent}" was sent, and "{left}" was not' if sent else f"Error: not sent: {why}"


def transfer_tool(agent: Agent) -> ToolSpec:
    """The tool that the model is offered, with the names of the agent's table."""
    names = list(agent.transfer)
    return ToolSpec(
        TRANSFER_TOOL,
        f"Put the caller through to a person: {', '.join(names)}. Tell the caller first that you will.",
        {"type": "object", "required": ["to"], "properties": {"to": {"type": "string", "enum": names}}},
    )


def target(agent: Agent, arguments: str) -> str:
    """The target that the model wants for the caller. Raises TransferFailed, whose text says which names it may use."""
    try:
        to = msgspec.json.decode(arguments, type=_TransferArguments).to
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        to = ""
    if to not in agent.transfer:
        raise TransferFailed(f"`to` must be one of: {', '.join(agent.transfer)}")
    return agent.transfer[to]


def is_target(text: str) -> bool:
    """Whether the telephone network, or a SIP network, can be asked for `text`."""
    return bool(_TARGET.fullmatch(text) and (is_sip(text) or number(text).strip("+")))


def is_sip(target: str) -> bool:
    """Whether `target` is the address of a SIP network."""
    return target.lower().startswith(("sip:", "sips:"))


def number(target: str) -> str:
    """The number of `target` as networks dial it: "+4930123456" of "+49 (0)30 12-34 56" and "tel:+49-30-123456". A
    number without "+" stays one. Empty for a SIP address."""
    if is_sip(target):
        return ""
    said = target[4:] if target.lower().startswith("tel:") else target
    said = said.partition(";")[0]
    if said.startswith("+"):
        said = said.replace("(0)", "")  # Dialled only where the country's code is not.
    return said.translate(_FILLERS)


def sip_uri(target: str, domain: str) -> str:
    """`target` as a SIP URI: a number is one of `domain`."""
    return target if is_sip(target) else f"sip:{number(target).replace('#', '%23')}@{domain}"
