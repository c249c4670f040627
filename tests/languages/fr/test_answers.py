"""Whether a few French words answer what the agent asked."""

import pytest

from voicepipe.languages.fr.language import FRENCH

TURN = FRENCH.turn
MANY, DAY, TIME = "Avec plaisir. Pour combien de personnes ?", "Quel jour ?", "À quelle heure ?"
FITS, BOOK = "Est-ce que cela vous convient ?", "Une table pour quatre, vendredi. Je la réserve ?"
ELSE, RIGHT = "C'est noté. Puis-je faire autre chose pour vous ?", "C'est bien cela ?"
NAME, WHO, UNDER = "Quel est votre nom ?", "C'est de la part de qui ?", "À quel nom, s'il vous plaît ?"
PHONE, PHONE_TOO = "Quel est votre numéro de téléphone ?", "À quel numéro peut-on vous joindre ?"
HELP, HELP_TOO = "Que puis-je faire pour vous ?", "Le Vieux Port, bonjour. Comment puis-je vous aider ?"
SPELL = "Pouvez-vous épeler votre nom ?"


@pytest.mark.parametrize(
    ("asked", "digits"),
    [
        (PHONE, True),
        (PHONE_TOO, True),
        ("Quel est votre numéro de commande ?", True),
        ("Nous sommes ouverts jusqu'à minuit. Et votre téléphone ?", True),
        (f"{PHONE} Nous vous rappellerons. Nous sommes ouverts.", False),
        (MANY, False),
        (FITS, False),
        (NAME, False),
        (SPELL, False),
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
            "quatre, nous sommes quatre, pour quatre, on sera six, quatre personnes s'il vous plaît, vingt-cinq, "
            "ma femme et moi, deux adultes et un enfant, pour deux personnes, juste moi, on est sept, une personne, "
            "euh quatre, nous serons douze, quatre ou cinq",
        ),
        (
            DAY,
            "vendredi, le vendredi, vendredi prochain, demain soir à huit heures, demain, après-demain, le trois mai, "
            "le premier juin, vendredi soir, ce soir, aujourd'hui, la semaine prochaine, samedi midi, "
            "le vingt et un septembre, plutôt le jeudi, dimanche s'il vous plaît, le plus tôt possible",
        ),
        (
            TIME,
            "dix-neuf heures trente, sept heures et demie, à vingt heures, midi, midi et demi, "
            "huit heures moins le quart, vers huit heures, "
            "à huit heures et quart, à sept heures du soir, neuf heures, plutôt vers dix heures, "
            "onze heures si possible, entre midi et deux heures",
        ),
        (
            FITS,
            "oui, oui merci, non merci, d'accord, ça marche, c'est bon, ouais, si, oui très bien, parfait, "
            "c'est parfait, oui c'est bon, non, non pas vraiment, ça me va, "
            "oui ça me convient, très bien merci, bien sûr, ok, "
            "oui s'il vous plaît, volontiers, tout à fait, ça joue, pas du tout, je veux bien, oui c'est bien ça",
        ),
        (BOOK, "oui, oui s'il vous plaît, non pour cinq, non à vingt heures, oui allez-y, non samedi"),
        (RIGHT, "oui, oui c'est ça, c'est exact, exactement, non, tout à fait, voilà, non c'est pas ça"),
        (ELSE, "non merci, non c'est tout, non merci c'est tout, c'est tout merci, ce sera tout, rien d'autre merci"),
        (
            NAME,
            "dupont, je m'appelle anne martin, anne martin, c'est dubois, mon nom est lefebvre, le goff, de smet, "
            "madame rousseau, oui c'est dupont, moi c'est claire fontaine",
        ),
        (WHO, "monsieur girard, c'est anne martin à l'appareil"),
        (UNDER, "au nom de martin, dupont s'il vous plaît, c'est au nom de perrin"),
    ],
)
def test_whole_answers(asked: str, said: str) -> None:
    for text in said.split(", "):
        assert TURN.answers(text, asked), text
        assert TURN.answers(f"{text.capitalize()}.", asked), "as recognisers write it"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (MANY, "pour, nous sommes, alors, on sera, quatre et, deux adultes et, ma femme et, euh, un instant, pour une"),
        (DAY, "le, pour le, vendredi à, demain à, à partir du, le trois mai à, une seconde, jusqu'à, ce, pas le"),
        (TIME, "à, vers, huit heures et, à partir de, entre, huit heures moins le, vendredi à"),
        (FITS, "oui mais, oui et, non mais, si on, oui est-ce que, c'est, attendez, oui d'accord mais je"),
        (BOOK, "oui pour, non plutôt le, oui mais pour"),
        (
            NAME,
            "je m'appelle, c'est, oui, euh, mon nom est, au nom de, un instant, attendez, c'est de la, non, bonjour",
        ),
        (PHONE, "zéro six douze, zéro six, c'est le, zéro"),
        (MANY, "zéro six douze, un deux trois"),
        (SPELL, "d, oui"),
        (HELP, "oui, non, bonjour, quatre, vendredi"),
        (HELP_TOO, "oui, oui bonjour"),
        ("Nous sommes ouverts jusqu'à vingt-deux heures.", "oui, quatre"),
        ("", "oui, quatre"),
        ("Je la réserve ? Je peux aussi vous rappeler. Rien ne presse.", "oui"),
    ],
)
def test_beginnings_and_answers_to_nothing(asked: str, said: str) -> None:
    for text in said.split(", "):
        assert not TURN.answers(text, asked), text


def test_a_lone_yes_may_go_on() -> None:
    for text in ("oui", "Oui.", "non", "ouais", "si", "d'accord"):
        assert TURN.is_lone(text), text
    for text in ("oui merci", "non merci", "vendredi", "oui mais", ""):
        assert not TURN.is_lone(text), text


def test_a_stray_word_is_no_yes_and_no_no() -> None:
    assert TURN.is_stray("table", FITS) and TURN.is_stray("Fenêtre.", BOOK)
    for text, asked in (("oui", FITS), ("vendredi", DAY), ("table", DAY), ("la table", FITS), ("table", HELP)):
        assert not TURN.is_stray(text, asked), text


def test_who_asks_to_wait_does_not_answer() -> None:
    for text in (
        "un instant s'il vous plaît",
        "Attendez.",
        "une seconde",
        "attendez une minute",
        "oui un petit instant",
        "deux secondes s'il vous plaît",
        "ne quittez pas",
        "euh attendez je regarde",
    ):
        assert TURN.asks_to_wait(text) or text.startswith("oui"), text
        assert not TURN.answers(text, FITS) and not TURN.answers(text, DAY) and not TURN.answers(text, NAME), text
    for text in ("oui", "vendredi", "un instant je voudrais une table", "j'attends depuis une heure", ""):
        assert not TURN.asks_to_wait(text), text


def test_a_telephone_number_is_ten_digits_in_pairs() -> None:
    def may_end(text: str) -> bool:
        return TURN.ends(TURN.as_said(text, False)) > 0.5

    assert may_end("mon numéro c'est le zéro six douze trente-quatre cinquante-six soixante-dix-huit")
    assert may_end("le zéro un quarante-cinq soixante-sept quatre-vingt-neuf dix")
    assert may_end("c'est le zéro sept quatre-vingt-un vingt-deux zéro trois quarante-quatre")
    assert may_end("mon numéro c'est le cinq un quatre cinq cinq cinq zéro un quatre deux")
    for begun in (
        "mon numéro c'est le",
        "mon numéro c'est le zéro six",
        "c'est le zéro six douze trente-quatre",
        "zéro six douze trente-quatre cinquante-six",
        "vous pouvez me joindre au zéro un quarante-cinq soixante-sept quatre-vingt-neuf",
        "mon téléphone c'est le cinq un quatre cinq cinq cinq",
    ):
        assert not may_end(begun), begun


def test_elided_words_want_another() -> None:
    for begun in ("je voudrais l'", "on peut rester jusqu'", "j'ai besoin d'", "je crois qu'il", "c'est l’"):
        assert TURN.ends(TURN.as_said(begun, False)) < 0.1, begun


@pytest.mark.parametrize("long", ["c'est bon " * 20_000, "oui " * 50_000, "quatre et " * 190, "zéro six " * 190])
def test_the_longest_texts_take_no_time(long: str) -> None:
    assert not TURN.answers(long, FITS) and not TURN.asks_to_wait(long)
    TURN.ends(TURN.as_said(long, False))
