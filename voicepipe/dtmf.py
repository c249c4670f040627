"""The caller presses keys of their telephone: a turn of theirs, which interrupts what is said at the first key."""

import asyncio

from voicepipe.call import Call
from voicepipe.commits import Commits
from voicepipe.turn.events import Item
from voicepipe.turn.keypad import Keypad

WHAT = "keys"
"""What the call waits for."""


class Dtmf:
    """One call's keys."""

    def __init__(self, call: Call, commits: Commits) -> None:
        self._call = call
        self._commits = commits
        self._keypad = Keypad()
        self._presses = 0

    def press(self, key: str) -> None:
        call, agent = self._call, self._call.dialogue.settings.agent
        call.no_input.back(call.ear.now)
        if not self._keypad.press(key, agent.keys):
            return
        call.wait(WHAT)
        call.dialogue.interrupt()
        self._presses += 1
        if self._keypad.complete(agent.keys) or not agent.key_pause_ms:
            self._end()
        else:
            call.spawn(self._end_after(agent.key_pause_ms, self._presses))

    async def _end_after(self, pause_ms: int, presses: int) -> None:
        # Not in the caller's sound: telephones may send none while a key is held.
        await asyncio.sleep(pause_ms / 1000)
        if self._presses == presses:
            self._end()

    def _end(self) -> None:
        text = self._keypad.take(self._call.dialogue.settings.agent.keys)
        self._commits.give_way()
        if pending := self._commits.pending:
            self._call.spawn(self._join_after(pending, text))
        else:
            self._join(text)

    async def _join_after(self, pending: "asyncio.Task[None]", text: str) -> None:
        await asyncio.wait([pending])
        self._join(text)

    def _join(self, text: str) -> None:
        call = self._call
        call.dialogue.add(Item(call.ids.new("item"), text=text))
        call.dialogue.interrupt()  # A client may have asked for a reply meanwhile.
        call.dialogue.owe("turn")
        if not self._keypad.keys:
            call.go_on(WHAT)
