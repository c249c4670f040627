"""Which part of a language model's stream is to be spoken: not its thoughts, nor its tool calls, nor what its
template writes around them (`markup.py`), and no white space around the whole.

Where a template opens the thoughts itself, a reply begins with them, and only what ends them tells. What was said up to
then is withdrawn: `StreamCorrection.WITHDRAWN`. From then on replies are held until that mark comes (`Habits`).
"""

import logging
from typing import Any

from voicepipe.engines.base import StreamCorrection
from voicepipe.engines.llm import markup
from voicepipe.engines.llm.markup import JsonText

log = logging.getLogger(__name__)
Said = str | StreamCorrection


class Habits:
    """How one server's model writes, learnt from its replies and used for all later ones."""

    def __init__(self, server: str, thoughts: str, calls: str, *, thinks_first: bool = False) -> None:
        """`thoughts`, `calls`: what to set, in words, so that the server parses them. `thinks_first`: as configured."""
        self._server = server
        self._advice = {"thoughts": thoughts, "tool calls": calls}
        self._configured = thinks_first
        self.thinks_first = thinks_first
        """The server's replies begin with thoughts that no mark opens."""
        self._logged: set[str] = set()

    def leaves(self, what: str, mark: str) -> None:
        """Log, once for each `what`, that the server leaves it in its replies."""
        if what not in self._logged:
            self._logged.add(what)
            log.warning(
                "%s leaves %s in the text of its replies (%s): %s", self._server, what, mark, self._advice[what]
            )

    def closed(self, mark: str) -> None:
        """Learn that a reply had begun with thoughts that nothing opened."""
        self.thinks_first = True
        self.leaves("thoughts", f"{mark}, and nothing that opens them")

    def opened(self) -> None:
        """Learn that a held reply was an answer from its beginning, or had a mark that opens its thoughts."""
        if self.thinks_first and not self._configured:
            self.thinks_first = False


class SpokenFilter:
    """Filters one reply's stream: passes on what is to be spoken, and leaves out thoughts and tool calls in words. A
    mark may come in pieces."""

    def __init__(self, habits: Habits | None = None) -> None:
        self._habits = habits or Habits("The language model", "have them parsed", "have them parsed")
        self._pending = ""
        self._skipping: Any = None
        """A pattern: up to where it is found, nothing is said."""
        self._header: list[str] | None = None
        """Pieces of the header of a harmony message that were skipped so far."""
        self._json: JsonText | None = None
        self._fenced = ""
        """The text before `_json`, such as a code fence."""
        self._held: list[str] | None = [] if self._habits.thinks_first else None
        """The reply, as long as it may be thoughts."""
        self._thought = False
        """The reply has thoughts, or had some."""
        self._began = self._passed_on = self._over = False
        """Something is said; some of it was passed on; the model's turn is over."""
        self._space = ""
        """White space that is said if something follows."""
        self._parted = False
        """Something was left out since the last words."""
        self._call_passed_on = False
        """`StreamCorrection.CALL_AS_TEXT` was passed on."""
        self._out: list[Said] = []

    def push(self, text: str) -> list[Said]:
        """Take more of the stream. Returns what may be said now, and what is to be done about what was said."""
        if self._held is not None:
            self._hold(text)
        elif text and not self._over:
            self._pending += text
            self._read()
        return self._given()

    def rest(self, *, cut: bool = False) -> list[Said]:
        """The text that was held back, once the stream has ended. `cut`: it had reached its limit, and may be thoughts
        alone."""
        if self._held is not None:
            held, self._held = "".join(self._held), None
            self._pending = "" if cut else held
            if not cut:
                self._habits.opened()
        self._read(last=True)
        if read := self._json:
            self._json = None
            if read.calls:
                self._calls("JSON")
            else:
                self._say(self._fenced + read.text)
        elif self._skipping is None and not self._over:
            self._say(self._pending)
        self._pending = ""
        return self._given()

    def _given(self) -> list[Said]:
        given, self._out = self._out, []
        self._passed_on |= any(isinstance(each, str) for each in given)
        self._call_passed_on |= StreamCorrection.CALL_AS_TEXT in given
        return given

    def _hold(self, text: str) -> None:
        assert self._held is not None
        self._held.append(text)
        self._pending += text
        found = markup.THOUGHT_SIGNS.search(self._pending, partial=True)
        if found and not found.partial:
            closed = found.lastgroup == "closed"
            self._pending = self._pending[found.start() :] if closed else "".join(self._held)
            self._held, self._thought = None, closed
            if not closed:
                self._habits.opened()
            self._read()
        else:
            self._pending = self._pending[found.start() :] if found else ""

    def _read(self, *, last: bool = False) -> None:
        """Read all of the pending text that is certain. `last`: no more follows."""
        while self._pending and not self._over:
            if self._json is not None:
                if not self._read_json(self._json):
                    return
            elif self._skipping is not None:
                if not self._skip():
                    return
            else:
                found = self._found(last=last)
                at = found.start() if found else len(self._pending)
                self._say(self._pending[:at])
                self._pending = self._pending[at:]
                if found is None or found.partial:
                    return
                self._pending = self._pending[found.end() - at :]
                self._mark(found.lastgroup, found.group())

    def _found(self, *, last: bool) -> Any:
        """The next mark, or what may become one; None: there is none."""
        for begins in markup.MAY_BEGIN.finditer(self._pending):
            if found := markup.MARKS.match(self._pending, begins.start(), partial=not last):
                return found
        return None

    def _mark(self, kind: str | None, mark: str) -> None:
        match kind:
            case "closed":
                self._closed(mark)
                if mark[-1] == "=":
                    self._calls(mark)
                    self._skip_to(markup.ANSWER)
            case "thought":
                self._thought = True
                self._skip_to(markup.closing(mark))
                self._habits.leaves("thoughts", mark)
            case "call":
                self._calls(mark)
                self._skip_to(markup.closing(mark))
            case "end":
                self._over = self._began
            case "header":
                self._over = self._began
                self._skip_to(markup.closing(mark))
            case "channel":
                self._header = []
                self._skip_to(markup.CHANNEL_TEXT)
                self._habits.leaves("thoughts", mark)
            case "between":
                self._skip_to(markup.CHANNEL_ENDS)
            case "json":
                self._json = JsonText()
                at = min(mark.find(sign) for sign in "{[" if sign in mark)
                self._fenced, self._pending = mark[:at], mark[at:] + self._pending

    def _closed(self, mark: str) -> None:
        """Thoughts end that nothing has opened: all before was thought. Not once there were others."""
        called = self._call_passed_on or StreamCorrection.CALL_AS_TEXT in self._out
        if not self._thought and (self._began or called):
            self._habits.closed(mark)
            self._out = [StreamCorrection.WITHDRAWN] if self._passed_on or self._call_passed_on else []
            self._began = self._passed_on = self._call_passed_on = False
        self._thought, self._space, self._parted = True, "", self._began

    def _skip_to(self, pattern: Any) -> None:
        self._skipping, self._parted = pattern, True

    def _skip(self) -> bool:
        """Skip up to where it is said again; False: that has not come."""
        found = self._skipping.search(self._pending, partial=True)
        at = found.start() if found else len(self._pending)
        if self._header is not None:
            self._header.append(self._pending[:at])
        self._pending = self._pending[at:]
        if found is None or found.partial:
            return False
        mark, self._skipping = found.group(), None
        if self._header is not None:
            header, self._header = "".join(self._header), None
            self._pending = self._pending[len(mark) :]
            self._message(header)
        elif mark not in (markup.CHANNEL, markup.START):  # With these another message begins, and is read as such.
            self._pending = self._pending[len(mark) :]
        return True

    def _message(self, header: str) -> None:
        """A message of harmony begins: "final", or "commentary to=functions.weather <|constrain|>json"."""
        channel = header.rpartition(markup.CHANNEL)[2].strip().lower()
        if "to=" in header:
            self._calls(f"{markup.CHANNEL}commentary to=")
        if channel.startswith("final"):
            self._closed(f"{markup.CHANNEL}final")
        elif channel == "commentary":
            self._thought = True  # What came before was none of the answer.
        elif markup.CHANNEL in header or channel != "assistant":
            self._thought = True
            self._skip_to(markup.CHANNEL_ENDS)

    def _read_json(self, read: JsonText) -> bool:
        rest = read.push(self._pending)
        self._pending = ""
        if rest is None:
            return False
        self._json, text = None, read.text
        if read.calls:
            self._calls("JSON")
            self._parted = True
            self._pending = rest
            if self._fenced:
                self._skip_to(markup.FENCE_ENDS)
        else:
            self._say(self._fenced + text)
            self._pending = rest
        return True

    def _calls(self, mark: str) -> None:
        self._habits.leaves("tool calls", mark)
        if StreamCorrection.CALL_AS_TEXT not in self._out:
            self._out.append(StreamCorrection.CALL_AS_TEXT)

    def _say(self, text: str) -> None:
        if not self._began or self._parted:
            text = text.lstrip()
        words = text.rstrip()
        if words:
            space = self._space or (" " if self._parted and self._began else "")
            self._out.append(space + words)
            self._began, self._parted, self._space = True, False, text[len(words) :]
        elif self._began and not self._parted:
            self._space += text
