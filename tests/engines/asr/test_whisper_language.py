"""The language that Whisper heard."""

from voicepipe.engines.asr.whisper_language import PassageLanguage, language_heard, whisper_name
from voicepipe.languages.written_language import LikelyLanguage

KNOWN = {"en", "fr", "cy", "no"}.__contains__
FOUND = [("<|cy|>", 0.5), ("<|fr|>", 0.375), ("<|en|>", 0.125)]


def test_of_the_languages_that_are_named_the_likeliest_was_heard() -> None:
    heard = language_heard(("en", "fr-CA"), "en", FOUND, KNOWN)
    assert heard == PassageLanguage("fr", sure=True, likely=LikelyLanguage("fr-CA", 0.75))


def test_without_names_it_is_the_likeliest_of_all() -> None:
    assert language_heard((), "", [("<|cy|>", 0.75)], KNOWN) == PassageLanguage("cy", sure=True)
    assert language_heard(("xx",), "", [("<|en|>", 0.4)], KNOWN) == PassageLanguage("en", sure=False)


def test_some_languages_have_another_name_at_whisper() -> None:
    assert whisper_name("nb-NO", KNOWN) == "no" and whisper_name("xx", KNOWN) == "" == whisper_name("", KNOWN)
