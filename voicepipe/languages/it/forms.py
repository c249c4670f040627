"""How Italian says numbers, dates, times and money, and what its abbreviations stand for."""

import re

from voicepipe.languages import number_words
from voicepipe.languages.number_forms import Money, NumberForms
from voicepipe.languages.spoken_amounts import in_groups
from voicepipe.languages.spoken_forms import abbreviations, forms_of
from voicepipe.languages.written_form import DIGITS, END, WrittenForm, before, form

_FEMININE = re.compile(
    r"(?:a|(?<!mil)ione|tà|tù|trice|udine|notte|chiave|classe|parte|voce|luce|rete|carne|moglie|serie|mail)$"
)
_MASCULINE = re.compile(r"(?:problema|sistema|programma|tema|clima|cinema|dramma|diploma|panorama)$")
_UNO = re.compile(r"(?:s[^aeiou]|z|gn|ps|pn|x|y)")
_ARTICLE = re.compile(r"(?i)(?:^|\b(?:il|la|al|alla|del|della|nel|nella|dal|sul) |[lL]['’])$")
_PREPOSITION = re.compile(r"(?i)\b(?:d[aei]|del|dal|al|a|il|i|le|tra|fra|in|nel|su|per) $")
_NO_NOUNS = frozenset(
    "a al alla alle allo ai con da dal dalle del della di e ed è fra il in la le lo ma non o per più su".split()
)


def _counted(number: int, context: str, noun: str) -> str:
    """1 posto -> un; 1 studente -> uno; 1 camera -> una; uno where no noun follows."""
    noun = noun.lower()
    if number != 1 or not noun or noun in _NO_NOUNS:
        return number_words.cardinal(number, "it")
    if _FEMININE.search(noun) and not _MASCULINE.search(noun):
        return "una"
    return "uno" if _UNO.match(noun) else "un"


def _dated(context: str, day: int, month: str) -> str:
    first = day == 1 and not context.endswith(("l'", "l’"))
    return f"{'primo' if first else number_words.cardinal(day, 'it')} {month}"


def _clock(hour: int, minute: int, mark: str) -> str:
    said = "una" if hour == 1 else number_words.cardinal(hour, "it")
    return f"{said} e {number_words.cardinal(minute, 'it')}" if minute else said


def _span(context: str, first: str, last: str) -> str:
    """9:00-17:00 -> dalle nove alle diciassette."""
    begin, end = (
        f"{word}ll'" if hour.startswith("una") else f"{word}lle " for word, hour in (("da", first), ("a", last))
    )
    if re.search(r"(?i)\bdall(?:e |['’])$", context):
        begin = ""
    return f"{begin}{first} {end}{last}"


def _fraction(digits: str) -> str:
    if len(digits) > 3 or digits[0] == "0":
        return number_words.digits(digits, "it")
    return number_words.cardinal(int(digits), "it")


def _to(context: str, low: str, high: str) -> str:
    """10-15 -> da dieci a quindici; del dieci quindici per cento."""
    return f"{low} {high}" if _PREPOSITION.search(context) else f"da {low} a {high}"


def _dialled(group: str) -> str:
    return ", ".join(number_words.digits(part, "it") for part in (in_groups(group) if len(group) > 4 else [group]))


_DIALLED = frozenset(("112", "113", "115", "117", "118", "1522"))

ITALIAN = NumberForms(
    tag="it", comma="virgola", point="punto", minus="meno", plus="più", percent="per cento", permille="per mille",
    and_="e", at="chiocciola", slash="barra", dash="trattino", underscore="trattino basso", times="per",
    equals="uguale a",
    to=_to,
    counted=_counted,
    fraction=_fraction,
    year=lambda number: number_words.cardinal(number, "it"),
    dated=_dated,
    before_year=" ",
    day_marks="[°º]?",
    date_context=r"\b(?:il|del|dal|al|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)",
    clock=_clock,
    clock_marks=r"h|ore",
    clock_context=r"\b(?:(?:d?alle|ore|h|le) |d?all['’])",
    span=_span,
    money={
        "€": Money("euro", "euro", "centesimo", "centesimi"),
        "$": Money("dollaro", "dollari", "centesimo", "centesimi"),
        "£": Money("sterlina", "sterline", "penny", "pence"),
        "CHF": Money("franco", "franchi", "centesimo", "centesimi"),
        "¥": Money("yen", "yen"),
    },
    price=lambda whole, cents: f"{whole} e {cents}",
    scales={
        "mln": ("milione", "milioni"), "mld": ("miliardo", "miliardi"), "mln.": ("milione", "milioni"),
        "mila": ("mila", "mila"), "M": ("milione", "milioni"), "milione": ("milione", "milioni"),
        "milioni": ("milione", "milioni"), "miliardo": ("miliardo", "miliardi"),
        "miliardi": ("miliardo", "miliardi"),
    },
    of="di ",
    metres="e ",
    units={
        "km": ("chilometro", "chilometri"), "m": ("metro", "metri"), "cm": ("centimetro", "centimetri"),
        "mm": ("millimetro", "millimetri"), "kg": ("chilogrammo", "chilogrammi"), "g": ("grammo", "grammi"),
        "mg": ("milligrammo", "milligrammi"), "t": ("tonnellata", "tonnellate"), "l": ("litro", "litri"),
        "cl": ("centilitro", "centilitri"), "dl": ("decilitro", "decilitri"), "ml": ("millilitro", "millilitri"),
        "m²": ("metro quadrato", "metri quadrati"), "m2": ("metro quadrato", "metri quadrati"),
        "km²": ("chilometro quadrato", "chilometri quadrati"), "m³": ("metro cubo", "metri cubi"),
        "ha": ("ettaro", "ettari"), "km/h": ("chilometro orario", "chilometri orari"),
        "°C": ("grado Celsius", "gradi Celsius"), "°F": ("grado Fahrenheit", "gradi Fahrenheit"), "h": ("ora", "ore"),
        "min": ("minuto", "minuti"), "s": ("secondo", "secondi"), "kWh": ("chilowattora", "chilowattora"),
        "kW": ("kilowatt", "kilowatt"), "W": ("watt", "watt"), "V": ("volt", "volt"), "kB": ("kilobyte", "kilobyte"),
        "MB": ("megabyte", "megabyte"), "GB": ("gigabyte", "gigabyte"), "TB": ("terabyte", "terabyte"),
        "GHz": ("gigahertz", "gigahertz"), "°": ("grado", "gradi"), "gg": ("giorno", "giorni"),
        "mq": ("metro quadrato", "metri quadrati"),
    },
    per={
        "mese": "al mese", "giorno": "al giorno", "anno": "all'anno", "settimana": "alla settimana",
        "notte": "a notte", "persona": "a persona", "pers.": "a persona", "ora": "all'ora", "h": "all'ora",
        "minuto": "al minuto", "min": "al minuto", "kg": "al chilo", "mq": "al metro quadrato",
        "m²": "al metro quadrato",
    },
    fractions={"1/2": "mezzo", "1/3": "un terzo", "2/3": "due terzi", "1/4": "un quarto", "3/4": "tre quarti"},
    mixed="{whole} e {part}",
    multiple=lambda number: f"{_counted(number, '', 'volta')} {'volta' if number == 1 else 'volte'}",
    dialled=_dialled,
    spaced_numbers=False,
    code_context=r"(?:codice|pin|numero|pratica|riferimento|password|cap|con)(?: (?:è|postale))?(?: il)?",
    phone_context=r"\b(?:numero(?: è)?|(?:chiami|componga|faccia|chiamare) il|al)",
    short_number=lambda group: number_words.digits(group, "it") if group in _DIALLED else "",
)  # fmt: skip


def _ordinals(found: re.Match[str]) -> str | None:
    number = int(found["number"]) if found["number"] else number_words.roman(found["roman"])
    is_degree = found["ending"] == "°" and not _ARTICLE.search(before(found))
    if not number or is_degree:
        return None
    said = number_words.ordinal(number, "it")
    return said[:-1] + "a" if found["ending"] in ("ª", "a") else said


def _own() -> tuple[WrittenForm, ...]:
    return (
        form("ordinal", DIGITS, r"(?P<number>[0-9]{1,3})[.]?(?P<ending>[ºª°])(?![\w])(?P<roman>)", _ordinals),
        form("century", "IVXLC", r"(?P<number>)(?P<roman>[IVXLC]{1,8})(?P<ending>)(?= secolo\b)", _ordinals),
        form("one o'clock", "1", rf"(?<=\ball['’])1{END}", lambda found: "una"),
        *abbreviations(
            {
                "ecc.": "eccetera", "p. es.": "per esempio", "es.": "esempio", "tel.": "telefono", "ca.": "circa",
                "C.so": "Corso", "P.zza": "Piazza", "P.za": "Piazza", "V.le": "Viale", "L.go": "Largo",
                "max.": "massimo", "min.": "minimo", "cell.": "cellulare", "int.": "interno", "incl.": "incluso",
                "c.a.": "circa", "gg.": "giorni", "c/o": "presso", "pp.vv.": "prossimi",
                "S.p.A.": "società per azioni", "S.r.l.": "srl", "F.lli": "Fratelli",
            },
            titles={
                "Dott.": "dottor", "Dr.": "dottor", "Dott.ssa": "dottoressa", "Sig.": "signor", "Sig.ra": "signora",
                "Sig.na": "signorina", "Sigg.": "signori", "Avv.": "avvocato", "Ing.": "ingegner",
                "Prof.": "professor", "Prof.ssa": "professoressa", "Geom.": "geometra", "Rag.": "ragionier",
                "Arch.": "architetto", "On.": "onorevole",
            },
            numbered={
                "n.": "numero", "n°": "numero", "nº": "numero", "N.": "numero", "nr.": "numero", "pag.": "pagina",
                "pagg.": "pagine", "art.": "articolo", "cap.": "capitolo", "§": "paragrafo", "p.": "pagina",
            },
            ending=("ecc.",),
        ),
    )  # fmt: skip


FORMS = forms_of(ITALIAN, _own)
