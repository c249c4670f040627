"""Whether a few Italian words answer what the agent asked."""

import pytest

from voicepipe.languages.known import language_of

TURN = language_of("it").turn
MANY, DAY, TIME = "Con piacere. Per quante persone?", "Che giorno?", "A che ora?"
RIGHT, BOOK, ELSE = "Va bene così?", "Un tavolo per quattro. Lo prenoto?", "C'è altro che posso fare per lei?"
NAME, WHO, TELL = "Come si chiama?", "A che nome?", "Mi può dire nome e cognome?"
PHONE, SPELL = "Qual è il suo numero di telefono?", "Può fare lo spelling?"
HELP = "Buongiorno, Casa del Porto. Come posso aiutarla?"


def listed(texts: str) -> list[str]:
    return [text.strip() for text in texts.split(",")]


@pytest.mark.parametrize(
    ("asked", "digits"),
    [
        (PHONE, True),
        ("Mi lascia un recapito telefonico?", True),
        ("A che numero la posso richiamare?", True),
        ("Qual è il codice cliente?", True),
        (f"Siamo aperti fino alle dieci. {PHONE}", True),
        (f"{PHONE} La richiamiamo noi. Siamo aperti fino alle dieci.", False),
        ("Il numero è giusto?", False),
        ("Qual è il numero di persone?", False),
        (MANY, False),
        (RIGHT, False),
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
            "quattro, per quattro, siamo in quattro, siamo quattro, quattro persone grazie, solo io, io e mia moglie, "
            "due adulti e due bambini, due adulti e un bambino, in cinque, saremo in dodici, una decina, venticinque, "
            "cinque o sei, per due persone per favore, siamo in due più un bambino, solo una persona",
        ),
        (
            DAY,
            "venerdì, domani, venerdì sera, il tre maggio, il primo maggio, dopodomani, sabato prossimo, l'otto marzo, "
            "domani sera alle otto, per domani, oggi, stasera, il ventuno giugno, la settimana prossima, "
            "sabato o domenica, mercoledì mattina se possibile, venerdì tre maggio, il prima possibile",
        ),
        (
            TIME,
            "alle otto, alle sette e mezza, alle venti e trenta, verso le otto, alle otto e un quarto, all'una, "
            "le otto, a mezzogiorno, otto, alle otto di sera, alle sei meno un quarto, alle diciannove, dopo le sei, "
            "nel pomeriggio, alle otto grazie, alle nove del mattino, domani sera alle otto",
        ),
        (
            RIGHT,
            "sì, sì grazie, no, no grazie, va bene, d'accordo, certo, perfetto, sì va bene, benissimo grazie, "
            "esatto, okay, no per cinque, no alle nove, sì ma alle otto, volentieri, certo che sì, ottimo, "
            "sì confermo, direi di sì, si",
        ),
        (BOOK, "sì prego, sì perfetto grazie, no grazie, sì sì, per me va bene, sì la ringrazio, no per cinque"),
        (ELSE, "no grazie, no grazie è tutto, nient'altro, no basta così, è tutto grazie, sono a posto così"),
        (NAME, "rossi, mi chiamo anna bianchi, anna bianchi, sono marco, mi chiamo giulia lo presti, la rosa"),
        (WHO, "rossi, a nome rossi, ferrari grazie, di stefano, sono la signora ferri"),
        (TELL, "mario de santis, anna maria de santis, il mio nome è paolo verdi, giuseppe della valle"),
        ("Quale giorno preferisce? Il lunedì siamo chiusi.", "sabato"),
        ("Rossi è il nome giusto?", "sì esatto"),
    ],
)
def test_whole_answers(asked: str, said: str) -> None:
    for text in listed(said):
        assert TURN.answers(text, asked), text
        assert TURN.answers(f"{text.capitalize()}.", asked), "as recognisers write it"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (MANY, "per, siamo in, due adulti e, siamo, io e, beh, un attimo, per un tavolo, e, tre tre otto"),
        (DAY, "il, venerdì alle, per, domani alle, il tre di, la, un momento"),
        (TIME, "alle, alle sette e, verso le, dopo le, alle otto meno, le"),
        (RIGHT, "sì ma, sì però, il, vorrei, sì e, no aspetti, no ma, sì vorrei"),
        (NAME, "mi chiamo, sono, il mio nome è, sì, allora, un attimo, ehm, sì mi chiamo, anna maria de, scusi, certo"),
        (WHO, "a nome, a nome di, per, il"),
        (PHONE, "tre tre otto, tre, sì"),
        (SPELL, "esse"),
        (HELP, "sì, no, buongiorno, quattro"),
        ("Siamo aperti fino alle dieci.", "sì, quattro"),
        ("", "sì, quattro"),
    ],
)
def test_beginnings_and_answers_to_nothing(asked: str, said: str) -> None:
    for text in listed(said):
        assert not TURN.answers(text, asked), text


def test_a_lone_yes_or_no() -> None:
    for text in ("sì", "Sì.", "si", "no", "okay", "certo"):
        assert TURN.is_lone(text), text
    for text in ("sì grazie", "no alle nove", "quattro"):
        assert not TURN.is_lone(text), text


def test_a_word_that_is_neither_yes_nor_no() -> None:
    assert TURN.is_stray("panda", RIGHT)
    assert not TURN.is_stray("sì", RIGHT) and not TURN.is_stray("panda rossa", RIGHT)
    assert not TURN.is_stray("panda", MANY)


def test_who_asks_to_wait() -> None:
    for text in listed(
        "un attimo, aspetti, un momento per favore, aspetti un attimo, no aspetti, un attimo solo, mi dia un secondo, "
        "sì un attimo, attenda in linea, solo un attimo, scusi un attimo, devo controllare, non riattacchi"
    ):
        assert TURN.asks_to_wait(text), text
    for text in listed("un attimo che, aspetti ma, quattro, sì, un momento non ho capito, mi scusi, arrivo domani"):
        assert not TURN.asks_to_wait(text), text


def test_a_long_text_takes_no_time() -> None:
    assert not TURN.answers("sì " * 100_000, RIGHT) and not TURN.asks_to_wait("un attimo " * 50_000)
    assert not TURN.answers("alle sette e " * 10_000, TIME)
