"""How likely a turn ends after its last words."""

from hypothesis import given
from hypothesis import strategies as st

from voicepipe.languages.en.as_said import as_said
from voicepipe.languages.en.callers import callers_ends, closed
from voicepipe.languages.en.completeness import RULES
from voicepipe.languages.en.sentence_ends import SentenceEnds

sentences = st.lists(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=5).map(" ".join), min_size=1)


@given(sentences)
def test_the_end_of_a_turn_has_a_probability(sentences: list[str]) -> None:
    ends = SentenceEnds(sentences, RULES, closed)
    for text in (*sentences, "unheard of", "what are your", ""):
        assert 0 <= ends.probability(text) <= 1


def test_what_was_always_a_whole_sentence_ends() -> None:
    ends = SentenceEnds(["do you have a table", "is there a bus"] * 9, RULES, closed)
    assert ends.probability("do you have a table") > 0.6
    assert ends.probability("do you have a") < 0.02
    assert ends.probability("can i come at seven") > 0.7  # nothing was counted: it may end


def test_words_that_callers_go_on_after_seldom_end_a_turn() -> None:
    ends = callers_ends()
    for whole, begun in (
        ("what are your opening hours", "what are your opening"),
        ("i would like to change my address", "i would like to change"),
        ("it stopped working yesterday", "it stopped"),
        ("my name is anna miller", "my name is"),
    ):
        assert ends.probability(whole) > 2 * ends.probability(begun), whole


def test_a_number_ends_where_it_is_whole() -> None:
    def probability(text: str) -> float:
        return callers_ends().probability(as_said(text))

    for whole in ("at 7:30", "at seven thirty", "about 730.", "in 2026", "It's 020 7946 0958"):
        assert probability(whole) > 0.7, whole
    assert probability("my number is five five five one two three four") > 0.7, "a whole telephone number"
    assert probability("My number is 555.") < 0.2 and probability("My number is 555-01") < 0.2
