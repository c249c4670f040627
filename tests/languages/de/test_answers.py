"""Whether a few German words answer what the agent asked."""

import pytest

from voicepipe.languages.known import language_of

TURN = language_of("de").turn
MANY, DAY, TIME = "Sehr gern. Für wie viele Personen?", "An welchem Tag?", "Um wie viel Uhr?"
RIGHT, BOOK, ELSE = (
    "Passt das so?",
    "Ein Tisch für vier. Soll ich ihn reservieren?",
    "Kann ich Ihnen sonst noch helfen?",
)
NAME, WHO = "Wie ist Ihr Name?", "Auf welchen Namen darf ich reservieren?"
PHONE, SPELL = "Wie lautet Ihre Telefonnummer?", "Können Sie das bitte buchstabieren?"
HELP = "Guten Tag, Hafenhaus. Wie kann ich Ihnen helfen?"


def listed(texts: str) -> list[str]:
    return [text.strip() for text in texts.split(",")]


@pytest.mark.parametrize(
    ("asked", "digits"),
    [
        (PHONE, True),
        ("Und Ihre Kundennummer?", True),
        ("Unter welcher Nummer erreichen wir Sie?", True),
        ("Wo können wir Sie zurückrufen?", True),
        (f"{PHONE} Wir rufen zurück. Wir haben bis zehn geöffnet.", False),
        (MANY, False),
        (RIGHT, False),
        (NAME, False),
        (HELP, False),
        ("", False),
    ],
)
def test_who_is_asked_for_digits(asked: str, digits: bool) -> None:
    assert TURN.wants_digits(asked) == digits


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            MANY,
            "vier, zu viert, wir sind zu viert, wir sind vier, für vier, für vier personen, "
            "zwei erwachsene und zwei kinder, vier bitte, nur ich, meine frau und ich, also wir sind fünf, "
            "fünf oder sechs, zu zweit bitte, acht leute, wir kommen zu dritt, ungefähr zwölf, "
            "zwei erwachsene und ein kind, sechs personen, alleine",
        ),
        (
            DAY,
            "freitag, am freitag, am freitag abend, freitagabend, morgen, morgen abend, heute, übermorgen, "
            "nächsten montag, der dritte mai, am dritten mai, am einundzwanzigsten, am freitag den dritten mai, "
            "nächste woche mittwoch, dritter fünfter, am samstag bitte, lieber am sonntag, morgen früh, "
            "am ersten weihnachten",
        ),
        (
            TIME,
            "halb acht, um acht, um acht uhr, viertel nach sieben, viertel vor acht, gegen zwanzig uhr dreißig, "
            "acht, acht uhr, neunzehn uhr, um halb acht bitte, so gegen sieben, abends um acht, "
            "morgen abend um acht, zwölf uhr mittags, zehn nach acht, zwischen sieben und acht, "
            "fünf vor halb neun, dreiviertel acht, am nachmittag, acht uhr passt mir gut",
        ),
        (
            RIGHT,
            "ja, ja bitte, nein, nein danke, passt, passt so, stimmt so, genau, ne, nee, doch, das passt, "
            "ja das passt, ja genau, richtig, ja stimmt, das ist richtig, in ordnung, ja gern, gerne, okay, "
            "einverstanden, das passt mir gut, nein das ist falsch, das stimmt nicht, perfekt danke, "
            "ja bitte das wäre nett, alles klar, jawohl, na klar, nö",
        ),
        (
            BOOK,
            "ja, ja gerne, ja bitte, nein danke, machen sie das, "
            "sehr gern, nein für fünf, klar, lieber nicht, ja für vier",
        ),
        (
            ELSE,
            "nein danke, nein, nein das ist alles, das war alles, "
            "danke nein, nein vielen dank, das war's, sonst nichts",
        ),
        (
            NAME,
            "müller, anna schmidt, mein name ist anna schmidt, ich heiße weber, schmidt mein name, "
            "hier ist peter klein, auf müller, ja müller, ich bin die anna, huber bitte, das ist frau schneider, "
            "yılmaz, meier-lang",
        ),
        (WHO, "müller, auf den namen schulz, auf becker, unter krause bitte"),
        ("Mit wem spreche ich?", "mit peter weber, peter weber, hier spricht anna braun"),
        ("Welcher Tag wäre Ihnen recht? Am Montag ist geschlossen.", "samstag, der samstag"),
        ("Stimmt der Name Anna Schmidt?", "ja, ja genau, nein"),
    ],
)
def test_whole_answers(asked: str, said: str) -> None:
    for text in listed(said):
        assert TURN.answers(text, asked), text
        assert TURN.answers(f"{text.capitalize()}.", asked), "as recognisers write it"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            MANY,
            "für, wir sind, wir sind zu, ja, also, "
            "zwei erwachsene und, für einen tisch am, vier mit, vier wir sind, moment",
        ),
        (DAY, "am, der, nächsten, am freitag um, freitag und, an einem, einen augenblick bitte, lieber am"),
        (
            TIME,
            "um, halb, viertel nach, viertel vor, gegen, "
            "kurz nach, um acht oder, morgen um, so gegen, zwischen sieben und",
        ),
        (RIGHT, "ja aber, ja und, nein ich, ja bitte für einen, das ist, ja am, doch nicht für"),
        (
            NAME,
            "mein name ist, ich heiße, ja, also, auf, "
            "einen moment, auf den namen, mein name, warten sie, hier ist, frau",
        ),
        (PHONE, "null drei null, null, eins zwei drei"),
        (MANY, "null drei null"),
        (SPELL, "m, m ü"),
        (HELP, "ja, nein, hallo"),
        ("Wir haben bis zehn geöffnet.", "ja, vier"),
        ("", "ja, vier"),
        ("Soll ich reservieren? Ich kann Sie auch zurückrufen. Es eilt nicht.", "ja"),
    ],
)
def test_beginnings_and_answers_to_nothing(asked: str, said: str) -> None:
    for text in listed(said):
        assert not TURN.answers(text, asked), text


def test_a_lone_yes_or_no_behind_which_more_may_follow() -> None:
    for text in listed("ja, nein, Ja., doch, okay, nee, genau, stimmt"):
        assert TURN.is_lone(text), text
    for text in listed("ja bitte, nein danke, vier, morgen, das passt, ja ja genau"):
        assert not TURN.is_lone(text), text


def test_one_word_that_is_no_answer_to_a_yes_or_no_question() -> None:
    for text in listed("hund, ich, jahr"):
        assert TURN.is_stray(text, RIGHT), text
    for text in listed("ja, nein, vier"):
        assert not TURN.is_stray(text, RIGHT), text
    assert not TURN.is_stray("hund", MANY) and not TURN.is_stray("der hund", RIGHT)


def test_who_asks_to_wait() -> None:
    for text in listed(
        "moment, einen moment, einen moment bitte, einen augenblick bitte, warten sie mal, warten sie bitte, "
        "warte mal, ja moment, sekunde, eine sekunde, moment mal bitte, nein warten sie, bleiben sie bitte dran, "
        "bitte warten sie einen moment, äh moment, moment ich schau mal nach"
    ):
        assert TURN.asks_to_wait(text), text
        assert not TURN.answers(text, RIGHT), text
    for text in listed("in einem moment, warten sie auf mich, ja, moment ich habe, ich warte, augenblicklich"):
        assert not TURN.asks_to_wait(text), text
