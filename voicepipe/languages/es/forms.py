"""How Spanish says numbers, dates, times and money, and what its abbreviations stand for."""

import re

from voicepipe.languages import number_words
from voicepipe.languages.number_forms import Money, NumberForms
from voicepipe.languages.spoken_amounts import in_groups
from voicepipe.languages.spoken_forms import abbreviations, forms_of
from voicepipe.languages.written_form import DIGITS, END, GAP, WrittenForm, form

_FEMININE = re.compile(
    r"(?:a|ión|dad|tad|tud|umbre|ez|noche|tarde|clase|calle|parte|mujer|llave|(?<!ur)gente|serie|sede|nube|suite"
    r"|as|iones|dades|tades|tudes|umbres|noches|tardes|clases|calles|partes|mujeres|llaves|veces|series|sedes|suites)$"
)
_MASCULINE = re.compile(r"(?:d[íi]a|problema|sistema|programa|mapa|idioma|tema|clima|avión|camión|guion|juez|pez)s?$")
_NO_NOUNS = frozenset(
    "a al con de del e el en entre es está la las lo los más me menos mi o para pero por que se si sin su y ya".split()
)
_ONE_THOUSAND = re.compile(r"\b(veinti)?uno(?= mil)")
_NAMES = {11: "undécimo", 12: "duodécimo"}


def _counted(number: int, context: str, noun: str) -> str:
    """21 euros -> veintiún; 21 páginas -> veintiuna; 200 libras -> doscientas; veintiuno where no noun follows."""
    said = re.sub(
        r"\b(veinti)?uno(?= mil)", lambda its: "veintiún" if its[1] else "un", number_words.cardinal(number, "es")
    )
    noun = noun.lower()
    if not noun or noun in _NO_NOUNS or (number > 1 and not noun.endswith(("s", "mil", "millón"))):
        return said
    if _FEMININE.search(noun) and not _MASCULINE.search(noun):
        begin, mark, rest = said.rpartition("millones ")
        rest = re.sub("cientos|quinientos", lambda its: its[0][:-2] + "as", rest)
        return begin + mark + re.sub("uno$", "una", rest)
    return re.sub("(veinti)?uno$", lambda its: "veintiún" if its[1] else "un", said)


def _clock(hour: int, minute: int, mark: str) -> str:
    """8:05 -> ocho y cinco; 20:15 -> veinte quince; 18:00 h -> dieciocho horas."""
    said = _counted(hour, "", "horas")
    if minute:
        joint = " y " if minute < 10 or hour <= 12 else " "
        return f"{said}{joint}{number_words.cardinal(minute, 'es')}"
    return f"{said} horas" if mark else said


def _fraction(digits: str) -> str:
    if len(digits) > 3 or digits[0] == "0":
        return number_words.digits(digits, "es")
    return number_words.cardinal(int(digits), "es")


def _ordinal(number: int, ending: str) -> str:
    """2.º -> segundo; 3.er -> tercer; 3.ª -> tercera."""
    said = _NAMES.get(number) or number_words.ordinal(number, "es")
    if ending == "er":
        return said.removesuffix("o")
    return said[:-1] + "a" if ending in "ªa" else said


def _dialled(group: str) -> str:
    return ", ".join(number_words.digits(part, "es") for part in (in_groups(group) if len(group) > 4 else [group]))


_DIALLED = frozenset(("112", "091", "092", "061", "062", "016", "911"))

SPANISH = NumberForms(
    tag="es", comma="coma", point="punto", minus="menos", plus="más", percent="por ciento", permille="por mil",
    and_="y", at="arroba", slash="barra", dash="guion", underscore="guion bajo", times="por", equals="igual a",
    to=lambda context, low, high: f"{low} a {high}",
    counted=_counted,
    fraction=_fraction,
    year=lambda number: number_words.cardinal(number, "es"),
    dated=lambda context, day, month: f"{number_words.cardinal(day, 'es')} de {month}",
    before_year=" de ",
    day_marks="(?:[.]?º)?",
    date_context=r"\b(?:el|del|al|día|lunes|martes|miércoles|jueves|viernes|sábado|domingo)",
    clock=_clock,
    clock_marks=r"h(?:oras|s)?",
    clock_context=r"\b(?:las?|sobre las) ",
    money={
        "€": Money("euro", "euros", "céntimo", "céntimos"),
        "$": Money("dólar", "dólares", "centavo", "centavos"),
        "£": Money("libra", "libras", "penique", "peniques"),
        "CHF": Money("franco", "francos", "céntimo", "céntimos"),
        "MXN": Money("peso", "pesos", "centavo", "centavos"),
        "¥": Money("yen", "yenes"),
    },
    price=lambda whole, cents: f"{whole} con {cents}",
    scales={
        "M": ("millón", "millones"), "mill.": ("millón", "millones"), "millón": ("millón", "millones"),
        "millones": ("millón", "millones"), "mil": ("mil", "mil"),
    },
    of="de ",
    metres="",
    units={
        "km": ("kilómetro", "kilómetros"), "m": ("metro", "metros"), "cm": ("centímetro", "centímetros"),
        "mm": ("milímetro", "milímetros"), "kg": ("kilogramo", "kilogramos"), "g": ("gramo", "gramos"),
        "mg": ("miligramo", "miligramos"), "t": ("tonelada", "toneladas"), "l": ("litro", "litros"),
        "cl": ("centilitro", "centilitros"), "dl": ("decilitro", "decilitros"), "ml": ("mililitro", "mililitros"),
        "m²": ("metro cuadrado", "metros cuadrados"), "m2": ("metro cuadrado", "metros cuadrados"),
        "km²": ("kilómetro cuadrado", "kilómetros cuadrados"), "m³": ("metro cúbico", "metros cúbicos"),
        "ha": ("hectárea", "hectáreas"), "km/h": ("kilómetro por hora", "kilómetros por hora"),
        "°C": ("grado Celsius", "grados Celsius"), "°F": ("grado Fahrenheit", "grados Fahrenheit"),
        "h": ("hora", "horas"), "min": ("minuto", "minutos"), "s": ("segundo", "segundos"),
        "kWh": ("kilovatio hora", "kilovatios hora"), "kW": ("kilovatio", "kilovatios"), "W": ("vatio", "vatios"),
        "V": ("voltio", "voltios"), "kB": ("kilobyte", "kilobytes"), "MB": ("megabyte", "megabytes"),
        "GB": ("gigabyte", "gigabytes"), "TB": ("terabyte", "terabytes"), "GHz": ("gigahercio", "gigahercios"),
        "°": ("grado", "grados"),
    },
    per={
        "mes": "al mes", "día": "al día", "año": "al año", "semana": "a la semana", "noche": "por noche",
        "persona": "por persona", "pers.": "por persona", "hora": "por hora", "h": "por hora",
        "minuto": "por minuto", "min": "por minuto", "kg": "el kilo", "m²": "el metro cuadrado",
    },
    fractions={"1/2": "medio", "1/3": "un tercio", "2/3": "dos tercios", "1/4": "un cuarto", "3/4": "tres cuartos"},
    mixed="{whole} y {part}",
    multiple=lambda number: "una vez" if number == 1 else f"{_counted(number, '', 'veces')} veces",
    dialled=_dialled,
    code_context=r"(?:código|pin|clave|número|referencia|contraseña|termina en)(?: (?:es|postal))?(?: el)?",
    phone_context=r"\b(?:marque(?: el)?|al|llame al)",
    short_number=lambda group: number_words.digits(group, "es") if group in _DIALLED else "",
)  # fmt: skip


def _half_day(found: re.Match[str]) -> str:
    """9 a. m. -> nueve de la mañana."""
    hour = int(found["hour"])
    said = _clock(hour, int(found["minute"] or 0), "")
    if found["half"].lower() == "a":
        return f"{said} de la {'madrugada' if 1 <= hour < 6 else 'noche' if hour == 12 else 'mañana'}"
    return f"{said} {'del mediodía' if hour == 12 else 'de la tarde' if hour < 8 else 'de la noche'}"


def _ordinals(found: re.Match[str]) -> str | None:
    return _ordinal(int(found["number"]), found["ending"])


def _century(found: re.Match[str]) -> str | None:
    number = number_words.roman(found["number"])
    return f"{found['word']} {number_words.cardinal(number, 'es')}" if number else None


TIMES: tuple[WrittenForm, ...] = (
    form(
        "half of a day",
        DIGITS,
        rf"(?P<hour>1[0-2]|0?[1-9])(?:[:.](?P<minute>[0-5][0-9]))?{GAP}(?P<half>[aApP])[.]?{GAP}[mM](?:[.]|\b)",
        _half_day,
    ),
)


def _own() -> tuple[WrittenForm, ...]:
    return (
        form("ordinal", DIGITS, r"(?P<number>[0-9]{1,3})(?:[.]?(?P<ending>[ºª°]|er))(?![\w])", _ordinals),
        form("century", "sS", r"(?P<word>[sS]iglo) (?P<number>[IVXLC]{1,8})\b", _century),
        form("one o'clock", "1", rf"(?<=\ba la )1{END}", lambda found: "una"),
        *abbreviations(
            {
                "etc.": "etcétera", "p. ej.": "por ejemplo", "Ud.": "usted", "Uds.": "ustedes", "Vd.": "usted",
                "aprox.": "aproximadamente", "EE. UU.": "Estados Unidos", "tel.": "teléfono", "tfno.": "teléfono",
                "Av.": "Avenida", "Avda.": "Avenida", "C/": "calle ", "c/": "calle ", "Pza.": "Plaza",
                "Pl.": "Plaza", "máx.": "máximo", "mín.": "mínimo", "dcha.": "derecha", "izq.": "izquierda",
                "izda.": "izquierda", "dpto.": "departamento", "incl.": "incluido", "admón.": "administración",
                "núm.": "número", "cía.": "compañía", "Urb.": "Urbanización", "Ctra.": "Carretera",
            },
            titles={
                "Sr.": "señor", "Sra.": "señora", "Srta.": "señorita", "Sres.": "señores", "Dr.": "doctor",
                "Dra.": "doctora", "Dª": "doña", "Dña.": "doña", "Sta.": "Santa", "Sto.": "Santo",
                "Prof.": "profesor", "Lic.": "licenciado", "Ing.": "ingeniero",
            },
            numbered={
                "n.º": "número", "nº": "número", "n°": "número", "Nº": "número", "N.º": "número", "pág.": "página",
                "págs.": "páginas", "art.": "artículo", "cap.": "capítulo", "hab.": "habitación", "§": "párrafo",
            },
            ending=("etc.", "EE. UU.", "dcha.", "izq.", "izda."),
        ),
    )  # fmt: skip


FORMS = forms_of(SPANISH, _own, TIMES)
