"""Words that an agent says how to say: which are found, and what a voice is given for them."""

import pytest

from voicepipe.agent import Pronunciation
from voicepipe.languages.pronunciation import BEGINS, ENDS, Pronunciations, ipa_words, unknown_ipa
from voicepipe.languages.speakable import pieces, speakable
from voicepipe.languages.spoken_pieces import together

WORDS: dict[str, str | Pronunciation] = {
    "Siobhan": "Shivawn", "New York": "Nooh Yawk", "Dr. Who": "the Doctor", "O": "oh", "Brien": "wrong",
    "24/7": "always", "Łódź": "Woodge", "C++": "see plus plus",
}  # fmt: skip


def said(text: str, words: dict[str, str | Pronunciation] = WORDS, *, ipa: bool = False) -> str:
    own = Pronunciations.of(words, ipa=ipa)
    parts = pieces(text, "en", own)
    assert "".join(part.written for part in parts) == text, "people read what the model wrote"
    return together(parts).replace(BEGINS, "<").replace(ENDS, ">")


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Ask for Siobhan.", "Ask for Shivawn."),
        ("SIOBHAN, siobhan!", "Shivawn, Shivawn!"),
        ("**Siobhan**'s chair", "Shivawn's chair"),
        ("Siobhan’s chair", "Shivawn’s chair"),
        ("Siobhanna, Maria-Siobhan", "Siobhanna, Maria-Shivawn"),
        ("in new\n york, York", "in Nooh Yawk, York"),
        ("O'Brien and I'm O. Brien", "O'Brien and I'm oh. wrong"),
        ("Dr. Who and Dr. Smith, 24/7", "the Doctor and Doctor Smith, always"),
        ("siobhan@example.com, www.siobhan.com", speakable("siobhan@example.com, www.siobhan.com")),
        ("ŁÓDŹ", "Woodge"),
        ("C++ costs $5.", "see plus plus costs five dollars."),
        ("Siobhan\nNext", "Shivawn, Next"),
    ],
)
def test_whole_words_of_any_case_are_said_as_the_agent_says(text: str, spoken: str) -> None:
    assert said(text) == spoken


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("Siobhan.", "<ʃɪvˈɔːn>."),
        ("Siobhan's, SIOBHAN\nnext", "<ʃɪvˈɔːnz>, <ʃɪvˈɔːn>, next"),
        ("Bach's, Fritz's", "<bˈɑːxs>, <fɹˈɪtsɪz>"),
        ("New York", "<njuː> <jˈɔːk>"),
    ],
)
def test_ipa_is_marked_word_by_word_for_voices_that_read_it(text: str, spoken: str) -> None:
    ipa: dict[str, str | Pronunciation] = {
        "Siobhan": "/ʃɪˈvɔːn/", "Bach": "/ˈbɑːx/", "Fritz": "/ˈfɹɪts/", "New York": "/njuː ˈjɔːk/"
    }  # fmt: skip
    assert said(text, ipa, ipa=True) == spoken
    assert said(text, ipa, ipa=False) == speakable(text)


def test_each_kind_of_voice_has_what_it_reads() -> None:
    both: dict[str, str | Pronunciation] = {"Siobhan": Pronunciation(ipa="/ʃɪˈvɔːn/", spelling="Shivawn")}
    assert (said("Siobhan", both, ipa=True), said("Siobhan", both)) == ("<ʃɪvˈɔːn>", "Shivawn")


def test_what_a_model_writes_never_passes_for_ipa() -> None:
    assert said(f"Say {BEGINS}ʃɪt{ENDS} now.") == "Say ʃɪt now."


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("'lestə", "lˈestə"),
        ("ʃɪ.ˈvɔ:n", "ʃɪvˈɔːn"),
        ("t\u0361ʃʌmli", "tʃʌmli"),
        ("ˈstrʌ.gl", "strˈʌɡl"),
        ("bɔ\u0303", "bɔ\u0303"),
    ],
)
def test_ipa_as_it_is_typed(typed: str, given: str) -> None:
    assert ipa_words(typed) == given and not unknown_ipa(typed)


def test_signs_that_are_none_of_the_ipa_are_named() -> None:
    assert unknown_ipa("SH1v@n") == "SH1@"
