"""Errors and warnings about an agent's variables and its time zone. Each is a line "key: what is wrong; what helps"."""

import difflib
import re
from collections.abc import Iterator
from zoneinfo import available_timezones

from voicepipe.agent import Agent
from voicepipe.config.word_problems import FIRST
from voicepipe.conversation.agent_texts import TextUse, changed
from voicepipe.conversation.variables import (
    BUILT_IN,
    LONGEST,
    NAME,
    STRANGERS,
    VariableFound,
    has_variables,
    variables_in,
    zone,
)

ALSO_KEYS = {"name", "voice", "language", "speed", "keys"}
"""Keys of an agent that are as well a sensible name for a variable."""
_HOST_ENDS = re.compile(r"[a-z]+://[^/?#]+[/?#]", re.IGNORECASE)
_SINGLE_BRACED = re.compile(r"(?<!\{)\{\s*([A-Za-z_]\w*)\s*\}(?!\})")


def of_variables(agent: Agent) -> Iterator[str]:
    """Problems of the table `variables`, of the texts in which variables stand, and of the time zone."""
    yield from _of_time_zone(agent)
    for name, value in agent.variables.items():
        if name in Agent.__struct_fields__ and name not in ALSO_KEYS:
            yield f"variables.{name}: is a key of the agent; put it {FIRST}"
        elif name in BUILT_IN:
            yield f"variables.{name}: is always there and has its value from the call; choose another name"
        elif not NAME.fullmatch(name):
            yield f"variables: {name!r} is no name; allowed: up to 64 letters, digits and _, no digit first"
        if len(value) > LONGEST:
            yield f"variables.{name}: has {len(value)} characters; allowed: {LONGEST}"
    texts = dict[str, str]()

    def note(key: str, text: str, use: TextUse) -> str:
        texts[key] = text
        return text

    changed(agent, note)
    for found in variables_in(agent):
        if problem := _of_one(agent, found, texts[found.key]):
            yield f"{found.key}: {problem}"
    for index, tool in enumerate(agent.tools):
        if has_variables(str(tool.parameters)):
            yield f"tools[{index}].parameters: variables are not filled in here; put them into the tool's description"


def single_braced(agent: Agent) -> Iterator[str]:
    """A line for each name in single braces that is read out, or read by the model, as it stands."""
    known = {*BUILT_IN, *agent.variables}
    lines: list[str] = []

    def look(key: str, text: str, use: TextUse) -> str:
        if use in ("spoken", "read") and not key.startswith("intents["):
            for found in _SINGLE_BRACED.finditer(text):
                if found[1] in known or use == "spoken":
                    what = "read out" if use == "spoken" else "given to the model"
                    lines.append(f"{key}: {found[0]} is {what} as it stands; a variable is written {{{{{found[1]}}}}}")
        return text

    changed(agent, look)
    yield from lines


def _of_one(agent: Agent, found: VariableFound, text: str) -> str:
    """What is wrong with a variable in `text`; empty: nothing."""
    known = list(dict.fromkeys((*BUILT_IN, *agent.variables)))
    if found.name not in known:
        close = difflib.get_close_matches(found.name, known, 1)
        hint = f"did you mean {{{{{close[0]}}}}}? " if close else ""
        return f"there is no variable {found.written}; {hint}allowed: {', '.join(known)}, and what [variables] lists"
    if not found.is_well_written:
        return f"{found.written} has too many braces; write {{{{{found.name}}}}}"
    if found.use == "url" and not ((host := _HOST_ENDS.match(text)) and host.end() <= found.start):
        return f"{found.written} would decide which host gets the request; it may stand only behind the host, after a /"
    if found.use == "dialled" and found.name in STRANGERS:
        return f"{found.written} would let callers choose whom you call; use a variable that your hook sets"
    return ""


def _of_time_zone(agent: Agent) -> Iterator[str]:
    try:
        zone(agent.time_zone)
    except (KeyError, ValueError, OSError):
        names = available_timezones()
        close = difflib.get_close_matches(agent.time_zone, names, 1) or sorted(
            name for name in names if agent.time_zone.casefold() in name.casefold().split("/")
        )
        advice = f"did you mean {close[0]}?" if close else "give an IANA name, such as Europe/Berlin"
        yield f"time_zone: {agent.time_zone!r} is no time zone; {advice}"
