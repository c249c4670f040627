"""How French says numbers, dates, times and money, and what its abbreviations stand for."""

import re

from voicepipe.languages import number_words
from voicepipe.languages.number_forms import Money, NumberForms
from voicepipe.languages.spoken_forms import abbreviations, forms_of
from voicepipe.languages.written_form import DIGITS, WrittenForm, form

_FEMININE = re.compile(
    r"(?:[st]ion|xion|té|ie|ure|ance|ence|ette|ade|ise|tude|aison|esse|elle|ille|née|ière|oire"
    r"|chambre|page|place|personne|heure|minute|seconde|semaine|nuit|table|fois|commande|question|livre|tonne|pièce"
    r"|couronne|femme|fille|demande|carte|porte|tasse|ligne|lettre|adresse|offre|part|main|classe|salle|ville|rue|lire"
    r"|facture|boîte|pizza|bière|entrée|soirée|journée|voiture|clé|photo|assiette|pomme|annonce|réponse|cause|étape)s?$"
)
"""Nouns that want "une"."""
_MASCULINE = re.compile(r"(?:côté|été|comité|parapluie|incendie|génie|millionnaire|silence)s?$")


def _counted(number: int, context: str, noun: str) -> str:
    """1 and 21 before a feminine noun are "une" and "vingt et une"."""
    said = number_words.cardinal(number, "fr")
    noun = noun.lower()
    if said.endswith("un") and _FEMININE.search(noun) and not _MASCULINE.search(noun):
        return f"{said}e"
    return said


def _ordinal(number: int, ending: str) -> str:
    if number == 1:
        said = "première" if ending.startswith(("r", "ère")) and not ending.startswith("er") else "premier"
    elif number == 2 and ending.startswith("nd"):
        said = "seconde" if ending.startswith("nde") else "second"
    else:
        said = number_words.ordinal(number, "fr")
    return f"{said}s" if ending.endswith("s") else said


def _clock(hour: int, minute: int, mark: str) -> str:
    said = f"{_counted(hour, '', 'heure')} {'heure' if hour < 2 else 'heures'}"
    return f"{said} {number_words.cardinal(minute, 'fr')}" if minute else said


def _dated(context: str, day: int, month: str) -> str:
    return f"{'premier' if day == 1 else number_words.cardinal(day, 'fr')} {month}"


def _fraction(digits: str) -> str:
    """0,05 -> zéro cinq; more than three digits one by one."""
    zeros = len(digits) - len(digits.lstrip("0"))
    if len(digits) > 3 or zeros == len(digits):
        return number_words.digits(digits, "fr")
    return " ".join(["zéro"] * zeros + [number_words.cardinal(int(digits[zeros:]), "fr")])


def _dialled(group: str) -> str:
    """06 -> zéro six; 12 -> douze; 800 -> huit cents; longer ones in pairs."""
    if len(group) > 3:
        pairs = [group[at : at + 2] for at in range(len(group) % 2, len(group), 2)]
        return ", ".join(_dialled(pair) for pair in ([group[0]] if len(group) % 2 else []) + pairs)
    zeros = len(group) - len(group.lstrip("0"))
    rest = [number_words.cardinal(int(group[zeros:]), "fr")] if group[zeros:] else []
    return " ".join(["zéro"] * zeros + rest)


_DIALLED = frozenset(("30", "31", "32", "34", "36", "39"))
"""French service numbers of four digits begin so."""

FRENCH = NumberForms(
    tag="fr", comma="virgule", point="point", minus="moins", plus="plus", percent="pour cent", permille="pour mille",
    and_="et", at="arobase", slash="sur", dash="tiret", underscore="tiret bas", times="fois", equals="égale",
    to=lambda context, low, high: f"{low} à {high}",
    counted=_counted,
    fraction=_fraction,
    year=lambda number: number_words.cardinal(number, "fr"),
    dated=_dated,
    before_year=" ",
    day_marks="(?:er)?",
    date_context=r"\b(?:le|du|au|dès|avant|après|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)",
    clock=_clock,
    clock_marks=r"h(?:eures?)?|min(?:utes?)?",
    clock_context=r"\b(?:à|vers|dès|jusqu'à) ",
    hours_alone=True,
    money={
        "€": Money("euro", "euros", "centime", "centimes"),
        "$": Money("dollar", "dollars", "cent", "cents"),
        "£": Money("livre", "livres", "penny", "pence"),
        "CHF": Money("franc", "francs", "centime", "centimes"),
        "¥": Money("yen", "yens"),
    },
    price=lambda whole, cents: f"{whole} {cents}",
    scales={
        "M": ("million", "millions"), "Md": ("milliard", "milliards"), "Mds": ("milliard", "milliards"),
        "k": ("mille", "mille"), "million": ("million", "millions"), "millions": ("million", "millions"),
        "milliard": ("milliard", "milliards"), "milliards": ("milliard", "milliards"),
    },
    of="d'",
    singular_below_two=True,
    metres="",
    units={
        "km": ("kilomètre", "kilomètres"), "m": ("mètre", "mètres"), "cm": ("centimètre", "centimètres"),
        "mm": ("millimètre", "millimètres"), "kg": ("kilogramme", "kilogrammes"), "g": ("gramme", "grammes"),
        "mg": ("milligramme", "milligrammes"), "t": ("tonne", "tonnes"), "l": ("litre", "litres"),
        "cl": ("centilitre", "centilitres"), "dl": ("décilitre", "décilitres"), "ml": ("millilitre", "millilitres"),
        "m²": ("mètre carré", "mètres carrés"), "m2": ("mètre carré", "mètres carrés"),
        "km²": ("kilomètre carré", "kilomètres carrés"), "m³": ("mètre cube", "mètres cubes"),
        "ha": ("hectare", "hectares"), "km/h": ("kilomètre par heure", "kilomètres par heure"),
        "°C": ("degré Celsius", "degrés Celsius"), "°F": ("degré Fahrenheit", "degrés Fahrenheit"),
        "h": ("heure", "heures"), "min": ("minute", "minutes"), "s": ("seconde", "secondes"),
        "kWh": ("kilowatt-heure", "kilowatt-heures"), "kW": ("kilowatt", "kilowatts"), "W": ("watt", "watts"),
        "V": ("volt", "volts"), "kB": ("kilooctet", "kilooctets"), "MB": ("mégaoctet", "mégaoctets"),
        "GB": ("gigaoctet", "gigaoctets"), "TB": ("téraoctet", "téraoctets"), "GHz": ("gigahertz", "gigahertz"),
        "°": ("degré", "degrés"), "mn": ("minute", "minutes"), "Go": ("gigaoctet", "gigaoctets"),
        "Mo": ("mégaoctet", "mégaoctets"), "To": ("téraoctet", "téraoctets"),
    },
    per={
        "mois": "par mois", "jour": "par jour", "j": "par jour", "an": "par an", "semaine": "par semaine",
        "nuit": "par nuit", "personne": "par personne", "pers.": "par personne", "heure": "de l'heure",
        "h": "de l'heure", "minute": "la minute", "min": "la minute", "kg": "le kilo", "m²": "le mètre carré",
    },
    fractions={"1/2": "un demi", "1/3": "un tiers", "2/3": "deux tiers", "1/4": "un quart", "3/4": "trois quarts"},
    mixed="{whole} et {part}",
    multiple=lambda number: f"{_counted(number, '', 'fois')} fois",
    dialled=_dialled,
    code_context=r"(?:code|pin|numéro|référence|mot de passe|par)(?: (?:est|postal|c'est))?(?: le)?",
    phone_context=r"\b(?:au|le|faites|composez|appelez)",
    short_number=lambda group: _dialled(group) if len(group) == 4 and group[:2] in _DIALLED else "",
)  # fmt: skip


def _ordinals(found: re.Match[str]) -> str | None:
    number = int(found["number"]) if found["number"] else number_words.roman(found["roman"])
    return _ordinal(number, found["ending"]) if number else None


def _own() -> tuple[WrittenForm, ...]:
    return (
        form(
            "ordinal",
            DIGITS + "IVXLC",
            r"(?:(?P<number>[0-9]{1,4})|(?P<roman>[IVXLC]{1,8})(?=[èe]m?e? siècle))"
            r"(?P<ending>ers?|ères?|res?|[èe]mes?|es?|ndes?|nds?)\b",
            _ordinals,
        ),
        form("saint", "S", r"St(?P<e>e?)[-. ]+(?=[A-ZÉÈ])", lambda found: "Sainte-" if found["e"] else "Saint-"),
        *abbreviations(
            {
                "etc.": "et cetera", "p. ex.": "par exemple", "c.-à-d.": "c'est-à-dire", "env.": "environ",
                "av.": "avenue", "bd": "boulevard", "bd.": "boulevard", "tél.": "téléphone", "tel.": "téléphone",
                "min.": "minimum", "max.": "maximum", "appt.": "appartement", "appt": "appartement", "apr.": "après",
                "rdv": "rendez-vous", "RDV": "rendez-vous", "svp": "s'il vous plaît", "SVP": "s'il vous plaît",
                "ttc": "toutes taxes comprises", "TTC": "toutes taxes comprises", "HT": "hors taxes",
                "chap.": "chapitre", "fbg": "faubourg", "bât.": "bâtiment", "cf.": "confer", "pl.": "place",
                "rte": "route",
            },
            titles={
                "M.": "Monsieur", "MM.": "Messieurs", "Mme": "Madame", "Mmes": "Mesdames", "Mlle": "Mademoiselle",
                "Dr": "Docteur", "Dr.": "Docteur", "Pr": "Professeur", "Me": "Maître",
            },
            numbered={
                "n°": "numéro", "N°": "numéro", "nº": "numéro", "no": "numéro", "p.": "page", "art.": "article",
                "§": "paragraphe",
            },
            ending=("etc.",),
        ),
    )  # fmt: skip


FORMS = forms_of(FRENCH, _own)
