"""Which language the caller of one call speaks, and the settings that follow from it."""

from collections.abc import Callable

from voicepipe.call.call_context import settings_in
from voicepipe.call.utterance import Utterance
from voicepipe.call_settings import CallSettings
from voicepipe.languages.tags import named_in
from voicepipe.turn.spoken_language import SpokenLanguage, ToldUtterance


class CallLanguage:
    """The language that the caller of one call speaks. As soon as the words of an utterance are known they decide about
    the settings with which it is judged and answered; they count for those after it once it is committed."""

    def __init__(
        self, settings: CallSettings, use: Callable[[CallSettings], None], current: Callable[[], CallSettings],
        asked: Callable[[], str],
    ) -> None:  # fmt: skip
        """`use`: has the call use settings from now on; `current`: those that it uses; `asked`: what the agent has said
        last."""
        self._use, self._current, self._asked = use, current, asked
        self._known = known_at_first(settings)

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

    def reads(self, text: str) -> None:
        """The caller has typed something."""
        self._known = self._known.after(ToldUtterance(text, asked=self._asked()))
        self._speak(self._known.now)

    def changed(self, settings: CallSettings) -> None:
        """The call uses these settings from now on, in the language of their agent: another agent's, or as the model
        wants it."""
        self._known = known_at_first(settings)

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


def known_at_first(settings: CallSettings) -> SpokenLanguage:
    """What is known while the caller has said nothing: the language is the agent's."""
    agent = settings.agent
    return SpokenLanguage(agent.spoken, named_in(agent.spoken, agent.language) or agent.language)
