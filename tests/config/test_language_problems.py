"""Errors in what an agent's file says of languages."""

import pytest

from voicepipe.agent import Agent
from voicepipe.config.language_problems import of_languages


@pytest.mark.parametrize(
    ("agent", "problem"),
    [
        (Agent("a", languages=("en", "xx")), "languages[1]: 'xx' is no language"),
        (Agent("a", languages=("en", "en-GB")), "languages: en and en-GB are one language"),
        (Agent("a", languages=("de", "fr")), "languages: en, in which it begins (language), is not among de, fr"),
        (Agent("a", languages=("en", "fr"), voices={"de": "d"}), "voices.de: is none of its languages"),
    ],
)
def test_each_has_an_error_that_says_what_to_do(agent: Agent, problem: str) -> None:
    (found,) = of_languages(agent)
    assert found.startswith(problem)


def test_a_right_one_has_none() -> None:
    assert not [*of_languages(Agent("a", languages=("en", "fr"), voices={"fr": "claire"})), *of_languages(Agent("a"))]
