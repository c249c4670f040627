"""LocalAgreement-2: what two successive hypotheses share is committed."""

from hypothesis import given
from hypothesis import strategies as st

from voicepipe.turn.agreement import Agreement

HYPOTHESES = st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=6), max_size=12)


def test_a_word_is_committed_when_it_stood_twice() -> None:
    agreement = Agreement()
    assert agreement.push(["what", "are"]) == []
    assert agreement.push(["what", "are", "your"]) == ["what", "are"]
    assert agreement.push(["what", "were", "your", "hours"]) == []
    assert agreement.push(["what", "are", "your", "hours"]) == []
    assert agreement.push(["what", "are", "your", "hours"]) == ["your", "hours"]


@given(HYPOTHESES)
def test_committed_words_only_grow_and_were_agreed_on(hypotheses: list[list[str]]) -> None:
    agreement, committed = Agreement(), []
    last: list[str] = []
    for words in hypotheses:
        new = agreement.push(words)
        committed += new
        assert agreement.committed == committed
        if new:
            assert words[: len(committed)][-len(new) :] == new == last[: len(committed)][-len(new) :]
        last = words
