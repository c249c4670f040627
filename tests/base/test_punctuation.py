"""The marks that end sentences and clauses, in every script."""

import pytest

from voicepipe.base.punctuation import CLAUSE_END, CLEAR_END, SENTENCE_END, in_latin, latin


@pytest.mark.parametrize("text", ["Yes.", "Yes?", "Well…", '"Yes!"', "(Yes.)", "**Yes.**", "はい。", "हाँ।", "Yes.🙂"])
def test_sentences_end(text: str) -> None:
    assert SENTENCE_END.search(text)


@pytest.mark.parametrize("text", ["Yes", "Yes,", "Yes:", "はい、", "Yes -"])
def test_sentences_go_on(text: str) -> None:
    assert not SENTENCE_END.search(text)


@pytest.mark.parametrize(
    ("text", "ends"),
    [("well,", True), ("well;", True), ("well –", True), ("–", True), ("-", True), ("はい、", True), ("well.", False),
     ("(well,)", True), ("well-", False), ("well—", True)],
)  # fmt: skip
def test_clauses_end(text: str, ends: bool) -> None:
    assert bool(CLAUSE_END.search(text)) == ends


@pytest.mark.parametrize(("text", "ends"), [("はい。", True), ("はい、", True), ("Yes.", False), ("5、", False)])
def test_marks_that_mean_nothing_else_end_wherever_they_stand_but_behind_digits(text: str, ends: bool) -> None:
    assert bool(CLEAR_END.search(text)) == ends


@pytest.mark.parametrize(
    ("mark", "its"),
    [("。", "."), ("、", ","), ("？", "?"), ("！", "!"), ("；", ";"), ("：", ":"), ("।", "."), ("؟", "?"), ("،", ","),
     ("．", "."), (".", "."), ("a", "a"), ("é", "é"), ("་", "་")],
)  # fmt: skip
def test_each_mark_has_its_like_in_latin_script(mark: str, its: str) -> None:
    assert latin(mark) == its


def test_models_that_know_latin_marks_get_those() -> None:
    assert in_latin("好的。请等一下，谢谢！") == "好的. 请等一下, 谢谢!"
    assert in_latin("Yes, please.") == "Yes, please."
    assert in_latin("Où ? Là.") == "Où ? Là."
