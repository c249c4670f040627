"""The agent's side of one call: the conversation, the reply that may be heard, and the one that is being prepared."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from voicepipe.agent import CallSettings, SemanticVad
from voicepipe.audio import ms_to_samples, samples_to_ms
from voicepipe.call.errands import Errand, bridged, talkative
from voicepipe.call.reply import Reply
from voicepipe.call.studio import Order, Studio
from voicepipe.call.telling import Telling
from voicepipe.errors import EngineError, ItemMismatch
from voicepipe.turn.events import Item, ItemAdded, ItemDeleted, ItemTruncated
from voicepipe.turn.history import cut_at
from voicepipe.turn.no_input import NoInput
from voicepipe.turn.prompt import Prompt, ToolCall
from voicepipe.turn.timing import TurnRecord
from voicepipe.words import plain

log = logging.getLogger(__name__)
STANDS_S = 0.3
"""As long as a greeting waits for how a client wants its session: first words come later."""
REMEMBERED_REPLIES = 50
"""Of so many spoken items the word times are kept, for clients that truncate late."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """An assistant's item as it went to the line."""

    words: tuple[tuple[str, int], ...]
    sent: int
    """Samples at the line's rate."""
    telling: Telling


class Dialogue:
    """Owns replies. `spawn` runs a task of the call's; `on_ended` is called when a reply has been heard to its end, or
    was ended by the client."""

    def __init__(
        self,
        studio: Studio,
        settings: CallSettings,
        spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"],
        on_ended: Callable[[], None],
    ) -> None:
        self.studio = studio
        self.settings = settings
        self.reply: Reply | None = None
        """Committed; it may be heard until this is None again."""
        self._ending: list[Reply] = []
        """Those before it which are over and whose last sound may still be playing, oldest first."""
        self._latest: Reply | None = None
        """The last committed reply. It stays when it is over, since it may turn out to have been a cut-in."""
        self._speculation: Reply | None = None
        self._spawn = spawn
        self._rehearsing: asyncio.Task[None] | None = None
        self._on_ended = on_ended
        self._spoken: dict[str, Spoken] = {}
        self.waiting: set[str] = set()
        """Why turns are not answered for now: keys that are still being pressed, a transfer."""
        self._owed: Literal["", "turn", "tool"] = ""
        """What has come meanwhile for a reply to answer."""
        self.on_transfer: Callable[[ToolCall], None] = _nobody
        """Called with the model's wish to put the caller through, when the reply that says so has been heard."""
        self.on_goodbye: Callable[[], None] = _nobody_hangs_up
        """Called when the model wishes to hang up, likewise."""

    @property
    def asked(self) -> str:
        """What the agent has said since the caller spoke last, as far as it was heard."""
        return self.studio.history.said_last()

    # Speculation.

    def prepare(self, turn: str, words: str, record: TurnRecord) -> None:
        """Start the reply to `words`, the last of the caller's `turn`, behind a closed gate. One to the same turn goes
        on."""
        key = plain(turn)
        if self._prepared(key):
            return
        self.discard()
        order = self.studio.order(self.settings, words, speculative=True)
        self._speculation = self._started(Reply(self.studio, order, record, key))

    def discard(self) -> None:
        """Drop the speculation. It leaves no trace."""
        reply, self._speculation = self._speculation, None
        if reply:
            reply.record.discard(self.studio.clock())
            self._stop(reply, "")

    def _prepared(self, key: str) -> Reply | None:
        """The speculation, if it answers `key`. One whose engine failed would say the fallback: there is time to try
        again."""
        reply = self._speculation
        return reply if reply and reply.key == key and not reply.failed else None

    async def turn_ends(self, words: str) -> float | None:
        """Probability that the caller's turn ends after `words`, not part of the conversation yet, as the language
        model reads it. None: it is not asked, since it has no say or there is none to ask, or it failed."""
        reader = self.studio.engines.reader
        if not reader or not words or not isinstance(self.settings.turn_detection, SemanticVad):
            return None
        try:
            return await reader.ends(self.studio.order(self.settings, words).prompt)
        except EngineError as error:
            # Its words alone: its traceback would keep the call where a log keeps records.
            log.error("the language model does not tell where turns end: %s", str(error))
            return None

    # Replies.

    def answer(self, turn: str, record: TurnRecord) -> None:
        """The caller's turn is committed and in the history: let its reply be heard, prepared or not."""
        key = plain(turn)
        if reply := self._prepared(key):
            record.speculation = "hit"
            self._speculation = None
        else:
            record.speculation = "miss"
            self.discard()
            order = self.studio.order(self.settings) if key else self.excuse(self.settings)
            reply = self._started(Reply(self.studio, order, record, key))
        self.stop("turn_detected")
        self._commit(reply)

    def excuse(self, settings: CallSettings) -> Order:
        """The reply to a turn without words: there is nothing in it that the model could answer, and it would answer
        the turn before once more."""
        excuses = settings.agent.not_understood or (settings.agent.fallback,)
        return Order(Prompt, settings, excuses[(self.studio.history.wordless() - 1) % len(excuses)])

    @property
    def making(self) -> Reply | None:
        """The reply that is not over yet: until it is no other may begin."""
        return self.reply if self.reply and not self.reply.over else None

    def begin(self, order: Order) -> None:
        """A reply that no turn of the caller's asked for. It queues behind the last sound of the one before."""
        self.discard()
        record = TurnRecord(self.studio.ids.new("turn"), by_request=True)
        self._commit(self._started(Reply(self.studio, order, record)))

    def _commit(self, reply: Reply) -> None:
        if self.reply:
            self._ending.append(self.reply)  # The new one queues behind it.
        else:
            self.studio.playout.restore()
        self.reply = self._latest = reply
        if reply.order.text is None:
            self._owed = ""
        reply.commit()

    def say(self, text: str) -> None:
        """Say exactly `text`."""
        self.begin(Order(Prompt, self.settings, text))

    def stop(self, reason: str) -> None:
        """End what may be heard. A reply whose end is out, but not heard yet, is truncated to what was."""
        for reply in self._sounding():
            self._stop(reply, reason)
            if reply.told_item and reply.heard_ms < reply.sent_ms:
                self._tell_truncated(reply.told_item, reply.heard_ms)
        self._ending, self.reply = [], None

    def repair(self) -> None:
        """The reply was a cut-in: end it, and let the prompt go on as if it had not been said."""
        reply, ended = self._latest, self.reply is None
        if reply is None:
            return
        reply.record.reopened = True
        self.studio.errands.taken_back(reply.knows)
        self._take_back("turn_detected")
        if reply.message:
            self.studio.history.repair(reply.message)
        if reply.spoken_item and not ended:
            self._tell_truncated(reply.spoken_item, reply.heard_ms)

    def interrupt(self) -> None:
        """End what is said, or prepared, for something that is no voice."""
        self.discard()
        if self.reply:
            self.end("turn_detected")

    def end(self, reason: str) -> None:
        """The client ends the reply that may be heard."""
        self.stop(reason)
        self._on_ended()

    def rehearse(self) -> None:
        """Make ahead what may have to be said at once, once the settings of now have stood for a moment: what is made
        for settings that are replaced is made for nothing."""
        if self._rehearsing:
            self._rehearsing.cancel()
        self._rehearsing = self._spawn(self._rehearse(self.settings))

    async def _rehearse(self, settings: CallSettings) -> None:
        await asyncio.sleep(STANDS_S)
        for text in (f"{settings.agent.acknowledgement} ", settings.agent.fallback):
            try:
                await self.studio.speaker.keep(text, voice=settings.voice, speed=settings.speed)
            except EngineError as error:
                log.warning("cannot say %r ahead of time: %s", text, error)

    # Waiting: turns are heard, and answered later.

    @property
    def answers(self) -> bool:
        """The caller's turns lead to replies, now and without the client's asking."""
        return self._answers_unasked and not self.waiting

    @property
    def _answers_unasked(self) -> bool:
        detection = self.settings.turn_detection
        return detection is not None and detection.create_response

    def wait(self, what: str) -> None:
        """No turn is answered until `go_on` of the same."""
        self.waiting.add(what)
        self.discard()

    def go_on(self, what: str) -> None:
        """No longer wait for it; `catch_up` makes the reply that is owed."""
        self.waiting.discard(what)

    def owe(self, what: Literal["turn", "tool"]) -> None:
        """A reply follows later: to a turn, unless the client asks for replies, or to a tool that has failed."""
        if what == "tool" or self._answers_unasked:
            self._owed = what

    def catch_up(self) -> bool:
        """Begin the reply that is owed, if there is one and nothing is in its way: also one that tells what came of a
        tool which the caller has not been told of."""
        results = self._results_owed()
        if not (self._owed or results) or self.waiting or self.reply:
            return False
        settings = self.settings
        if self._owed == "tool":  # A person hears that it failed before it is tried again.
            settings = msgspec.structs.replace(settings, tool_choice="none")
        elif results and settings.tool_choice != "none":  # Nobody has said anything that a tool could be forced upon.
            settings = msgspec.structs.replace(settings, tool_choice="auto")
        errands = self.studio.errands
        errands.bring_up(results)
        order = self.studio.order(settings)
        if results:  # One reply for each; what the prompt has no room for is brought up after it.
            errands.put_off(errands.known(order.prompt))
        self.begin(order)
        return True

    @property
    def works(self) -> bool:
        """A tool of ours runs, or a reply is owed for what came of one: it is not for the caller to speak."""
        return bool(self.studio.errands.running() or self._results_owed())

    def fill_silence(self, no_input: NoInput, now: int) -> bool:
        """The caller says nothing at the sample `now`: say what is to be said then. Returns whether something is."""
        if self.reply or self.waiting or self.settings.turn_detection is None:
            no_input.wait(now)
            return False
        line = self._bridge(no_input.work(now)) if self.works else no_input.line(now, self.settings.agent)
        if line:
            self.say(line)
        return bool(line)

    def _bridge(self, quiet_ms: float) -> str:
        """While a tool runs that no reply waits for, since the caller interrupted that one: its next text, due after so
        much silence; "" for none."""
        running = self.studio.errands.running()
        errand = talkative(running)
        audible = self.settings.modality == "audio" and self.studio.playout.line.listens
        if not (errand and audible and self._answers_unasked) or quiet_ms < errand.tool.while_running_every_ms:
            return ""
        text = errand.bridge
        bridged(running)
        return text

    def _results_owed(self) -> list[Errand]:
        return self.studio.errands.owed() if self._answers_unasked and not self._client_works() else []

    def _client_works(self) -> bool:
        """A tool of the client's has been called: the client asks for the next reply itself, perhaps at once."""
        last = self.studio.history.last_visible()
        return last is not None and self.studio.history.get(last).kind != "message"

    # The conversation.

    def add(self, item: Item, after: str | None = None, *, spoken: bool = False) -> None:
        """Raises ItemExists, ItemUnknown."""
        self._read()
        before = self.studio.history.add(item, after)
        self.studio.emit(ItemAdded(item, before, spoken))

    def delete(self, item_id: str) -> None:
        """Raises ItemUnknown."""
        self._read()
        self.studio.history.delete(item_id)
        self._spoken.pop(item_id, None)
        self.studio.emit(ItemDeleted(item_id))

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        """The client knows exactly how much of an item its caller heard. Raises ItemUnknown, ItemMismatch."""
        rate = self.studio.speaker.out_rate
        self.studio.history.shown(item_id)
        if any(reply.spoken_item == item_id for reply in self._sounding()):
            self._take_back("client_cancelled")  # What was heard of it is the client's to say.
            self._on_ended()
        spoken = self._spoken.get(item_id)
        if spoken is None:
            raise ItemMismatch(f"Item {item_id!r} has no audio that could be truncated.")
        sent_ms = round(samples_to_ms(spoken.sent, rate))
        if audio_end_ms > sent_ms:
            raise ItemMismatch(f"Audio content of {sent_ms}ms is already shorter than {audio_end_ms}ms")
        heard = ms_to_samples(audio_end_ms, rate)
        if audio_end_ms < sent_ms:  # As after a cancel, what is owed is told with the next reply.
            self.studio.errands.put_off(spoken.telling.broke_off(heard))
        text = cut_at(spoken.words, heard)
        self._read()
        if self.studio.history.heard(item_id, text, audio_end_ms):
            self.discard()  # It answers words that nobody has heard.
        self.studio.emit(ItemTruncated(item_id, audio_end_ms))

    def _read(self) -> None:
        """The conversation is about to change: a reply that was just begun answers it as it was."""
        if self.reply:
            _ = self.reply.order.prompt

    # Tasks.

    def _started(self, reply: Reply) -> Reply:
        reply.task = self._spawn(self._run(reply))
        return reply

    async def _run(self, reply: Reply) -> None:
        await reply.run()
        self._remember(reply)
        # Without sound of its own, too: it may stand behind one that has some.
        await self.studio.playout.heard_out()
        if reply.transfer:
            self.on_transfer(reply.transfer)
        elif reply.hangs_up:
            self.on_goodbye()
        if reply is self.reply:
            self.reply = None
            self._on_ended()
        elif reply in self._ending:
            self._ending.remove(reply)

    def _sounding(self) -> list[Reply]:
        """The replies that may be heard, oldest first."""
        return [*self._ending, self.reply] if self.reply else [*self._ending]

    def _take_back(self, reason: str) -> None:
        """End what may be heard, and say nothing of how much was."""
        for reply in self._sounding():
            self._stop(reply, reason)
        self._ending, self.reply = [], None

    def _tell_truncated(self, item_id: str, heard_ms: int) -> None:
        # A reply beside the conversation has no item in it, and a client may have deleted the item meanwhile.
        if item_id in self.studio.history:
            self.studio.emit(ItemTruncated(item_id, heard_ms))

    def _stop(self, reply: Reply, reason: str) -> None:
        reply.stop(reason)
        self._remember(reply)
        task, reply.task = reply.task, None
        if task:
            task.cancel()

    def _remember(self, reply: Reply) -> None:
        if item_id := reply.spoken_item:
            self._spoken.setdefault(item_id, Spoken(tuple(reply.words), reply.sent, reply.telling))
            while len(self._spoken) > REMEMBERED_REPLIES:
                del self._spoken[next(iter(self._spoken))]


def _nobody(asked: ToolCall) -> None:
    """Who puts the caller through while nobody does."""


def _nobody_hangs_up() -> None:
    """Who hangs up likewise."""
