"""An agent that finds its way through another telephone system's menus: when it must press no further key. Pure.

A menu that is heard again and again leads nowhere. What a recogniser makes of it differs each time, and an agent that
presses a key cuts it short, so two hearings are one menu when nearly all letters of the shorter one are found, in
order, in the longer one.
"""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from voicepipe.conversation.events import Item
from voicepipe.conversation.own_tools import KEYS_SENT, SEND_KEYS
from voicepipe.languages.known import language_of

TIMES = 3
"""Hearings of one menu, with keys sent between, after which no more keys are sent."""
IN_A_ROW = 3
"""Times that keys may be sent while the other side says nothing."""
LEAST_WORDS = 5
"""Words of a menu, at least. A person who says "yes, please" each time is none."""
LONGEST, MOST = 300, 6
"""Characters that are compared, those at the end, where a menu says what it waits for; and earlier menus, the latest:
on the event loop each may take 10 ms."""
ALIKE = 0.85
"""Share of the shorter text that is found in the longer one, from which on both are the same menu."""
_as_said = language_of("en").as_said
"""Menus of any language are compared with themselves alone, so that any form will do in which numbers are words."""
RUN = 4
"""Letters in a row that count as found: shorter runs are found in any text."""
LONG_RUN, LEAST_SHARE = 12, 0.6
"""Letters in a row with which the comparison begins, and the share of the shorter text that is left then, at least:
"Welcome to Acme" and "That is no valid choice" may stand before the same menu."""
REPEATED = f"not sent: the menu has said the same {TIMES} times; say that you cannot go on, or hang up"
UNANSWERED = "not sent: the other side has said nothing since the last keys; say nothing, and wait for what it says"


def why_not_to_press(items: Iterable[Item]) -> str:
    """Why no more keys may be sent in this conversation, as the model reads it; empty: they may."""
    *before, menu = _heard_before_keys(items)
    if len(before) >= IN_A_ROW and not any([*before[1 - IN_A_ROW :], menu]):
        return UNANSWERED
    return REPEATED if times_heard(menu, before[-MOST:]) >= TIMES else ""


def times_heard(menu: str, before: Sequence[str]) -> int:
    """How often a menu has been heard, with what was heard `before` each time that keys were sent; 0: it is none."""
    if len(menu.split()) < LEAST_WORDS:
        return 0
    return 1 + sum(is_same_menu(menu, other) for other in before)


def is_same_menu(one: str, other: str) -> bool:
    """Whether two texts, as said, are what a menu said at two times, or a part of it."""
    if min(len(one.split()), len(other.split())) < LEAST_WORDS:
        return False
    shorter, longer = sorted((one[-LONGEST:], other[-LONGEST:]), key=len)
    found = SequenceMatcher(None, longer, shorter, autojunk=False).get_matching_blocks()
    begin = next((block.b for block in found if block.size >= LONG_RUN), 0)
    rest = len(shorter) - begin
    alike = sum(block.size for block in found if block.size >= RUN and block.b >= begin)
    return rest >= LEAST_SHARE * len(shorter) and alike >= ALIKE * rest


def _heard_before_keys(items: Iterable[Item]) -> list[str]:
    """What the other side said before each time that keys were sent, and since then."""
    items = list(items)
    sent = {item.call_id for item in items if item.kind == "function_call_output" and item.output == KEYS_SENT}
    heard: list[list[str]] = [[]]
    for item in items:
        if item.kind == "message" and item.role == "user":
            heard[-1].append(_as_said(item.text))
        elif item.kind == "function_call" and item.name == SEND_KEYS and item.call_id in sent:
            heard.append([])
    return [" ".join(filter(None, texts)) for texts in heard]
