"""An agent's texts in other languages."""

from voicepipe.agent import Agent
from voicepipe.languages.agent_texts import in_language
from voicepipe.languages.known import language_of


def test_texts_that_an_agent_has_by_default_are_the_other_language_s_and_go_back_with_it() -> None:
    agent = Agent("desk", languages=("en", "fr"), fallback="Oh dear.")
    french, texts = in_language(agent, "fr"), language_of("fr").texts
    assert texts and french.language == "fr" and french.no_input == texts.no_input
    assert french.fallback == "Oh dear.", "its own stay"
    assert in_language(french, "en") == agent
    assert in_language(agent, "en") is agent
