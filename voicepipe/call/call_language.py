"""Which language the caller of one call speaks, and the settings that follow from it."""

from collections.abc import Callable

from voicepipe.call.call_context import settings_in
from voicepipe.call.utterance import Utterance
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.events import CallEvent, LanguageChanged
from voicepipe.languages.tags import named_in
from voicepipe.turn.spoken_language import LIKELY, SpokenLanguage, ToldUtterance


class CallLanguage:
    """The language that the caller of one call speaks. As soon as the words of an utterance are known they decide about
    the settings with which it is judged and answered; they count for those after it once it is committed."""

    def __init__(
        self, settings: CallSettings, use: Callable[[CallSettings], None], current: Callable[[], CallSettings],
        asked: Callable[[], str], emit: Callable[[CallEvent], None],
    ) -> None:  # fmt: skip
        """`use`: has the call use settings from now on; `current`: those that it uses; `asked`: what the agent has said
        last; `emit`: as that of `Call`."""
        self._use, self._current, self._asked, self._emit = use, current, asked, emit
        self._known = known_at_first(settings)
        self._emitted = self._known.now

    def guesses(self, utterance: Utterance) -> None:
        """The partial may be all of an utterance, and the reply to it is begun as a guess."""
        if utterance.partial_spoken.tag:
            told = ToldUtterance(utterance.partial, utterance.partial_ms, utterance.partial_spoken, self._asked())
            self._speak(self._known.after(told).now)

    def hears(self, utterance: Utterance) -> None:
        """The words of an utterance are known, which may go on."""
        self._speak(self._after(utterance).now)

    def keeps(self, utterance: Utterance) -> str:
        """An utterance is over, and part of the conversation. Returns its language."""
        self._known = self._after(utterance)
        self._speak(self._known.now)
        return self._known.now if len(self._known.languages) > 1 else ""

    def drops(self) -> None:
        """What was heard was no turn."""
        self._speak(self._known.now)

    def reads(self, text: str, asked: str) -> None:
        """The caller has typed something."""
        self._known = self._known.after(ToldUtterance(text, asked=asked))
        self._speak(self._known.now)

    def emit_change(self) -> None:
        """Emit that the language is another, if it is, once what has changed it is part of the conversation."""
        if self._known.now != self._emitted:
            self._emitted = self._known.now
            self._emit(LanguageChanged(self._emitted))

    def changed(self, settings: CallSettings) -> None:
        """The call uses these settings from now on, as the model wants it, in the language of their agent."""
        self._known = known_at_first(settings)
        self.emit_change()

    def handed_over(self, settings: CallSettings) -> None:
        """Another agent has the call, with these settings and in its language, which `AgentChanged` tells."""
        self._known = known_at_first(settings)
        self._emitted = self._known.now

    def _after(self, utterance: Utterance) -> SpokenLanguage:
        if len(self._known.languages) < 2:
            return self._known
        heard = ToldUtterance(utterance.text, utterance.audio_ms, utterance.spoken, self._asked())
        return self._known.after(heard)

    def _speak(self, tag: str) -> None:
        before = self._current()
        after = settings_in(before, tag)
        if after is not before:
            self._use(after)


def heard_in(utterance: Utterance) -> tuple[str, ...] | None:
    """In which language an utterance was spoken, by the recogniser alone, as in `ItemAdded.languages`."""
    told = utterance.spoken
    return ((told.tag,) if told.probability >= LIKELY and utterance.text else ()) if told.tag else None


def known_at_first(settings: CallSettings) -> SpokenLanguage:
    """What is known while the caller has said nothing: the language is the agent's."""
    agent = settings.agent
    return SpokenLanguage(agent.spoken, named_in(agent.spoken, agent.language) or agent.language)
