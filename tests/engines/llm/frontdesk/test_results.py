"""What tools answer, as a sentence."""

import pytest

from voicepipe.engines.llm.frontdesk.results import readable


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("It is fine.", "It is fine."),
        ('"ok"', "ok."),
        ("[1, 2]", "1, 2."),
        ("{}", ""),
        ('{"a": {"b": null}}', "A: b nothing."),
        ('{"problem": null, "reference": 5}', "Reference: 5."),
        ('"Maria is on the line."', "Maria is on the line."),
    ],
)
def test_results_as_sentences(result: str, said: str) -> None:
    assert readable(result) == said
