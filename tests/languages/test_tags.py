"""Languages by their tags."""

from voicepipe.languages.tags import english_name, named_in, primary


def test_a_tag_names_the_language_whatever_its_country() -> None:
    assert named_in(("en-GB", "fr"), "EN-us") == "en-GB"
    assert named_in(("en-GB", "en"), "en") == "en"
    assert named_in(("en", "fr"), "de") == "" == named_in(("en",), "")


def test_a_language_with_two_names_is_one() -> None:
    assert [primary(tag) for tag in ("nb_NO", "NO", "jw", "cmn-Hans", "de-AT", "")] == [
        "no",
        "no",
        "jv",
        "zh",
        "de",
        "",
    ]
    assert named_in(("nb-NO", "en"), "no") == "nb-NO" and english_name("nb") == "Norwegian Bokmål"
    assert english_name("iw") == "Hebrew"


def test_languages_have_names() -> None:
    assert [english_name(tag) for tag in ("fr-CA", "de", "xx")] == ["French", "German", ""]
