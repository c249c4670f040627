"""The caller presses keys of their telephone: a turn of theirs, which interrupts what is said at the first key."""

import asyncio

from voicepipe.call.call import Call
from voicepipe.call.commits import Commits
from voicepipe.turn.events import Item
from voicepipe.turn.keypad import Keypad

WHAT = "keys"
"""What the call waits for."""


class Dtmf:
    """One call's keys."""

    def __init__(self, call: Call, commits: Commits) -> None:
        self._hearing, self._speaking, self._changes = call.hearing, call.speaking, call.changes
        self._quiet, self._owed = call.quiet, call.owed
        self._jobs, self._ids = call.jobs, call.ids
        self._commits = commits
        self._keypad = Keypad()
        self._ends_at = 0.0
        """The loop's second at which the turn is over if no further key is pressed."""
        self._minded = False
        """A task waits for that."""

    def press(self, key: str) -> None:
        agent = self._speaking.settings.agent
        self._quiet.back(self._hearing.now)
        if not self._keypad.press(key, agent.keys):
            return
        self._owed.wait(WHAT)
        self._speaking.interrupt()
        if self._keypad.complete(agent.keys) or not agent.key_pause_ms:
            return self._end()
        self._ends_at = asyncio.get_running_loop().time() + agent.key_pause_ms / 1000
        if not self._minded:
            self._minded = True
            self._jobs.spawn(self._mind_pause())

    async def _mind_pause(self) -> None:
        """One task for all keys, however many are pressed. Not in the caller's sound: telephones may send none while a
        key is held."""
        loop = asyncio.get_running_loop()
        while (left_s := self._ends_at - loop.time()) > 0:  # noqa: ASYNC110 - each key moves it
            await asyncio.sleep(left_s)
        self._minded = False
        if self._keypad.keys:
            self._end()

    def _end(self) -> None:
        text = self._keypad.take(self._speaking.settings.agent.keys)
        self._commits.give_way()
        if pending := self._commits.pending:
            self._jobs.spawn(self._join_after(pending, text))
        else:
            self._join(text)

    async def _join_after(self, pending: "asyncio.Future[None]", text: str) -> None:
        await asyncio.wait([pending])
        self._join(text)

    def _join(self, text: str) -> None:
        self._changes.add(Item(self._ids.new("item"), text=text))
        self._speaking.interrupt()  # A client may have asked for a reply meanwhile.
        self._owed.turn()
        if not self._keypad.keys:
            self._owed.go_on(WHAT)
