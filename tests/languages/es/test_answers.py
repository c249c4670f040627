"""Whether a few words in Spanish answer what the agent asked."""

import pytest

from voicepipe.languages.es.language import SPANISH
from voicepipe.turn.endpoint import EndpointConfig, Endpointer, Evidence

TURN = SPANISH.turn
MANY, DAY, TIME = "Con mucho gusto. ¿Para cuántas personas?", "¿Qué día?", "¿A qué hora?"
SUITS, BOOK, ELSE = "¿Le viene bien?", "Una mesa para cuatro. ¿Se la reservo?", "De nada. ¿Necesita algo más?"
NAME, WHO, TELL = "¿Cómo se llama?", "¿Con quién hablo?", "¿Me dice su nombre, por favor?"
PHONE, SPELL = "¿Cuál es su número de teléfono?", "¿Me lo puede deletrear?"
HELP = "Casa Lucas, buenos días. ¿En qué puedo ayudarle?"


@pytest.mark.parametrize(
    ("asked", "digits"),
    [
        (PHONE, True),
        ("Abrimos hasta las diez. ¿Me da su móvil?", True),
        ("¿Cuál es el número de su pedido?", True),
        ("¿Me deja un teléfono de contacto?", True),
        (f"{PHONE} Le llamaremos. Abrimos hasta las diez.", False),
        ("¿Le llamamos a este número?", False),
        ("¿Para qué número de personas?", False),
        (MANY, False),
        (SUITS, False),
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
            "cuatro, somos cuatro, para cuatro, para cuatro personas por favor, seremos seis, dos adultos y dos niños, "
            "vamos a ser ocho, pues cuatro, 4, unas diez personas, los dos, una persona, para dos personas, "
            "solo para mí, mi mujer y yo, creo que cinco, veinticinco, treinta y dos",
        ),
        (
            DAY,
            "viernes, el viernes, mañana, el viernes por la noche, el tres de mayo, el veintiuno de junio, "
            "pasado mañana, este sábado, el sábado que viene, la semana que viene, el primero de enero, "
            "mejor el martes, hoy mismo",
        ),
        (
            TIME,
            "siete, a las siete y media, las veinte treinta, mañana a las ocho, a la una, a la una y media, "
            "a las ocho menos cuarto, sobre las nueve, 20:30, a las 20:30, a las diez de la noche, al mediodía, "
            "a eso de las nueve, a las nueve en punto, a primera hora, las ocho por favor",
        ),
        (
            SUITS,
            "sí, sí por favor, no gracias, vale, de acuerdo, claro que sí, está bien, sí me viene bien, "
            "perfecto gracias, no me viene bien, sí claro, no mejor a las nueve, muy bien, me parece bien, genial, "
            "dale, órale, sí el viernes, no mejor otro día",
        ),
        (BOOK, "sí, sí resérvela, no para cinco, sí por favor gracias, eso es, por supuesto, adelante, ok"),
        (ELSE, "no gracias, no eso es todo, nada más gracias, no nada más muchas gracias, sí"),
        (NAME, "garcía, me llamo ana lópez, ana lópez, mi nombre es ana lópez, soy ana lópez, a nombre de garcía"),
        (WHO, "ana lópez, con ana lópez, soy josé luis martínez"),
        (TELL, "juan pérez, sí ana lópez, martínez soler"),
        ("¿A nombre de quién?", "garcía, de garcía, a nombre de garcía"),
        ("¿Es correcto el nombre?", "sí, sí es correcto"),
        ("¿Qué día le viene bien? El lunes cerramos.", "el sábado"),
        ("¿Le llamamos a este número?", "sí, sí por favor"),
        ("¿Qué le parece?", "bien, me parece bien, perfecto"),
    ],
)
def test_whole_answers(asked: str, said: str) -> None:
    for text in said.split(", "):
        assert TURN.answers(text, asked), text
        assert TURN.answers(f"{text.capitalize()}.", asked), "as recognisers write it"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (MANY, "para, somos, sí, pues, para una, una, dos adultos y, para una mesa, cuatro a las, seis cinco cuatro"),
        (MANY, "un momento, espere, un segundito por favor, cinco cinco cinco, vamos a ser"),
        (DAY, "el, el tres de, mayo a, para el, este, el viernes a las, un momento, a ver, espere por favor"),
        (TIME, "a, a las, las, a las ocho y, a las ocho menos, sobre las, el viernes a las, sí"),
        (SUITS, "sí pero, sí y, sí es que, no porque, quisiera, vale pero, espere, sí quería una mesa con vistas"),
        (NAME, "me llamo, mi nombre es, soy, sí, pues, un momento, a nombre de, espere, un segundito, vale"),
        (TELL, "claro, sí soy, hola"),
        (PHONE, "seis cinco cuatro, seis, el, cero dos uno"),
        (SPELL, "ese"),
        (HELP, "sí, no, hola"),
        ("Abrimos hasta las diez.", "sí, cuatro"),
        ("", "sí, cuatro"),
        ("¿Se la reservo? También puedo llamarle. No tiene que decidirlo ahora.", "sí"),
    ],
)
def test_beginnings_and_answers_to_nothing(asked: str, said: str) -> None:
    for text in said.split(", "):
        assert not TURN.answers(text, asked), text


def test_a_lone_yes_or_no() -> None:
    assert all(TURN.is_lone(text) for text in ("sí", "Sí,", "no", "Vale.", "claro"))
    assert not any(TURN.is_lone(text) for text in ("sí por favor", "no gracias", "cuatro", ""))


def test_a_stray_word_is_no_yes_and_no_no() -> None:
    assert TURN.is_stray("mesa", SUITS) and TURN.is_stray("Bebé.", BOOK)
    assert not any(TURN.is_stray(text, SUITS) for text in ("sí", "no", "una mesa", "viernes"))
    assert not TURN.is_stray("mesa", MANY)


@pytest.mark.parametrize(
    ("text", "waits"),
    [
        ("un momento", True),
        ("Espere.", True),
        ("Un segundito, por favor.", True),
        ("espere un momento por favor", True),
        ("eh un momento", True),
        ("espéreme tantito un momento", False),
        ("no cuelgue", True),
        ("déjeme ver", True),
        ("un momento de", False),
        ("espere que", False),
        ("sí", False),
        ("", False),
    ],
)
def test_who_asks_to_wait(text: str, waits: bool) -> None:
    assert TURN.asks_to_wait(text) == waits


def test_waits_after_a_question() -> None:
    config = EndpointConfig()
    endpointer = Endpointer(config, "auto", TURN)

    def wait_ms(text: str, asked: str) -> float:
        return endpointer.judge(Evidence(text, asked=asked)).required_ms

    assert wait_ms("somos cuatro", MANY) == config.answer_ms
    assert wait_ms("a la una", TIME) == config.answer_ms
    assert wait_ms("sí", SUITS) == wait_ms("un momento", SUITS) == wait_ms("mesa", SUITS) == config.yes_ms
    assert wait_ms("para", MANY) > 1000 < wait_ms("sí pero", SUITS)
    assert wait_ms("seis cinco cuatro", PHONE) > 1000
