"""The language model of what callers are likely to say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.engines.sphinx_decoder import never_heard
from voicepipe.engines.sphinx_language import arpa, as_heard
from voicepipe.turn import callers

sentences = st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map(" ".join), min_size=1)


@given(sentences)
def test_the_probabilities_of_a_model_sum_to_one(sentences: list[str]) -> None:
    model = arpa(sentences)
    sections = [part.splitlines()[1:] for part in model.split("-grams:")[1:]]
    probability, backoff = {}, {}
    for line in (line for section in sections for line in section if "\t" in line):
        logprob, gram, *rest = line.split("\t")
        probability[tuple(gram.split())] = 10 ** float(logprob)
        backoff[tuple(gram.split())] = 10 ** float(rest[0]) if rest else 1.0

    def p(gram: tuple[str, ...]) -> float:
        return probability.get(gram) or backoff.get(gram[:-1], 1.0) * p(gram[1:])

    words = [gram[0] for gram in probability if len(gram) == 1]
    for history in [gram for gram in probability if len(gram) < 3 and gram[-1] != "</s>"]:
        if any(p((*history, word)) > 0 for word in words):
            assert sum(p((*history, word)) for word in words) == pytest.approx(1, abs=0.02)


def test_every_word_of_callers_can_be_heard() -> None:
    assert never_heard(callers.sentences()) == ""


def test_phrases_are_written_as_they_are_heard() -> None:
    assert as_heard(["I'd like a table, please!", "?", "Are you open?"]) == ["i'd like a table please", "are you open"]
    assert all(as_heard([sentence]) == [sentence] for sentence in (*callers.ordinary(), *callers.sentences()))
