"""How German says numbers, dates, times and money, and what its abbreviations stand for."""

import re

from voicepipe.languages import number_words
from voicepipe.languages.number_forms import Money, NumberForms, noun_behind
from voicepipe.languages.spoken_amounts import in_groups
from voicepipe.languages.spoken_forms import abbreviations, forms_of
from voicepipe.languages.written_form import DIGITS, WrittenForm, before, form

_FEMININE = re.compile(
    r"(?:ung|heit|keit|schaft|tion|sion|tät|ik|ur|ei|ie|nacht|person|nummer|karte|million|milliarde|frau|tür|uhr|antwort"
    r"|(?<!nam)(?<!kund)(?<!end)(?<!aug)(?<!jung)(?<!kolleg)(?<!käs)(?<!interess)(?<!gebäud)e)$"
)
"""Nouns that want "eine"."""
_MASCULINE = re.compile(
    r"(?:termin|tag|monat|tisch|platz|gast|anruf|artikel|punkt|brief|kunde|mitarbeiter|euro|dollar|cent|franken|rappen"
    r"|meter|liter|schritt|fehler|raum|stuhl|sitz|kaffee|tee|wein|saft|kuchen|gutschein|rabatt|code|name|kollege"
    r"|techniker|arzt|patient|versuch|vertrag|auftrag|schlüssel|koffer|hund|stock|eintrag|ruf|teil|weg|zug|bus|flug"
    r"|abend|morgen|mann|preis|wunsch|salat|burger|tipp|grund|zettel|beleg|parkplatz|balkon|yen|rubel|hektar|zentner)$"
)
"""Nouns that want "einen" in the accusative: the end of a compound says which they are."""
_NEUTER = re.compile(
    r"(?:kind|jahr|mal|haus|zimmer|buch|konto|bild|auto|angebot|ticket|paket|chen|lein|gespräch|essen|problem|bier|hotel)$"
)
"""Nouns that want "drittes"."""
_DATIVE = "mit|von|nach|seit|bei|aus|zu|vor|in|ab|unter|über|gegenüber|außer|binnen"
_WITH_DATIVE = re.compile(rf"(?i)\b(?:{_DATIVE}) $")
_WITH_ACCUSATIVE = re.compile(
    r"(?i)(?:\b(?:für|um|ohne|gegen|durch|pro|je) "
    r"|\b(?:hab|habe|haben|hat|hatte|hatten|hätte|hätten|gibt|brauche|brauchen|möchte|möchten|nehme|nehmen|buche|buchen|"
    r"reserviere|reservieren|finde|finden|sehe|sehen|bekomme|bekommen|erhalten|warten|dauert|dauern|kostet|kosten|"
    r"beträgt|bestelle|bestellen|schicke|schicken)\b[^.!?]{0,40})$"
)
_CARRIED = re.compile(r"[0-9]{1,2}[.]?,? (?:und|oder|bis|,) $")
"""An ordinal before this one, which has the same ending."""
_WEEKDAY = re.compile(r"(?<=\b[aA]m )(?:[A-Z][a-zä]+tag|Mittwoch|Sonnabend)(?:,|,? den)? $")
_DETERMINED = re.compile(
    r"(?i)\b(?:am|im|vom|zum|zur|beim|ins|ans|dem|den|des|bis|einem|einen|einer|diesem|diesen|jedem|jeden"
    rf"|(?:ihr|mein|unser|kein)e[mnr]|{_DATIVE})(?: der)? $"
    r"|\b(?P<der>der|die|das|diese|dieser|dieses|jede|jeder|jedes|eine|(?:ihr|mein|unser|kein|sein)e) $"
    r"|\b(?P<ein>ein|ihr|mein|unser|kein|sein) $"
)
_OF_A_DAY = re.compile(r"(?i)\b(?:am|vom|zum|dem|den|der) $")
_BEFORE_NOUN = r"(?= [A-ZÄÖÜa-zäöü])"
_HALF = {"1/2": "einhalb", "1/3": "ein Drittel", "2/3": "zwei Drittel", "1/4": "ein Viertel", "3/4": "drei Viertel"}


def _counted(number: int, context: str, noun: str) -> str:
    """1 Termin -> ein, einen or einem; 1 Minute -> eine; eins where no noun follows."""
    if number != 1 or not noun[:1].isupper():
        return number_words.cardinal(number, "de")
    word = noun.lower()
    dative = bool(_WITH_DATIVE.search(context))
    if word != "uhr" and _FEMININE.search(word):
        return "einer" if dative else "eine"
    if word == "uhr":
        return "ein"
    if dative:
        return "einem"
    return "einen" if _MASCULINE.search(word) and _WITH_ACCUSATIVE.search(context) else "ein"


def _ordinal(number: int, context: str, noun: str = "") -> str | None:
    """der 3. -> dritte; am 3. -> dritten; ein 3. -> dritter, drittes. None: nothing before it wants an ordinal."""
    context = _WEEKDAY.sub("", _CARRIED.sub("", context))
    said = number_words.ordinal(number, "de")
    found = _DETERMINED.search(context)
    if not found:
        return None
    if found["der"]:
        return said
    return said + ("n" if not found["ein"] else "s" if _NEUTER.search(noun.lower()) else "r")


def _dated(context: str, day: int, month: str) -> str:
    said = _ordinal(day, context) or number_words.ordinal(day, "de") + "r"
    return f"{said} {month}"


def _clock(hour: int, minute: int, mark: str) -> str:
    said = f"{'ein' if hour == 1 else number_words.cardinal(hour, 'de')} Uhr"
    return f"{said} {number_words.cardinal(minute, 'de')}" if minute else said


def _unit_in(context: str, name: str) -> str:
    """nach 200 m -> Metern."""
    return f"{name}n" if name.endswith("er") and _WITH_DATIVE.search(context) else name


def _dialled(group: str) -> str:
    return ", ".join(number_words.digits(part, "de") for part in (in_groups(group) if len(group) > 4 else [group]))


_DIALLED = frozenset(("110", "112", "115", "116", "117", "118", "144", "133", "122", "147", "1414"))

GERMAN = NumberForms(
    tag="de", comma="Komma", point="Punkt", minus="minus", plus="plus", percent="Prozent", permille="Promille",
    and_="und", at="at", slash="Schrägstrich", dash="Bindestrich", underscore="Unterstrich", times="mal",
    equals="gleich",
    to=lambda context, low, high: f"{low} bis {high}",
    counted=_counted,
    fraction=lambda digits: number_words.digits(digits, "de"),
    year=lambda number: number_words.year(number, "de"),
    dated=_dated,
    before_year=" ",
    day_marks="[.]?",
    date_context=r"\b(?:am|vom|bis|zum|den|der|dem|ab|seit)",
    clock=_clock,
    clock_marks="Uhr",
    clock_context=r"\b(?:um|gegen|ab|bis|von|und) ",
    money={
        "€": Money("Euro", "Euro", "Cent", "Cent"),
        "$": Money("Dollar", "Dollar", "Cent", "Cent"),
        "US$": Money("US-Dollar", "US-Dollar", "Cent", "Cent"),
        "£": Money("Pfund", "Pfund", "Penny", "Pence"),
        "CHF": Money("Franken", "Franken", "Rappen", "Rappen"),
        "Fr.": Money("Franken", "Franken", "Rappen", "Rappen"),
        "¥": Money("Yen", "Yen"),
        "ct": Money("Cent", "Cent"),
    },
    price=lambda whole, cents: f"{whole} {cents}",
    scales={
        "Mio.": ("Million", "Millionen"), "Mrd.": ("Milliarde", "Milliarden"), "Mio": ("Million", "Millionen"),
        "Mrd": ("Milliarde", "Milliarden"), "Million": ("Million", "Millionen"),
        "Millionen": ("Million", "Millionen"), "Milliarde": ("Milliarde", "Milliarden"),
        "Milliarden": ("Milliarde", "Milliarden"),
    },
    metres="",
    unit_in=_unit_in,
    units={
        "km": ("Kilometer", "Kilometer"), "m": ("Meter", "Meter"), "cm": ("Zentimeter", "Zentimeter"),
        "mm": ("Millimeter", "Millimeter"), "kg": ("Kilogramm", "Kilogramm"), "g": ("Gramm", "Gramm"),
        "mg": ("Milligramm", "Milligramm"), "t": ("Tonne", "Tonnen"), "l": ("Liter", "Liter"),
        "cl": ("Zentiliter", "Zentiliter"), "dl": ("Deziliter", "Deziliter"), "ml": ("Milliliter", "Milliliter"),
        "m²": ("Quadratmeter", "Quadratmeter"), "m2": ("Quadratmeter", "Quadratmeter"),
        "km²": ("Quadratkilometer", "Quadratkilometer"), "m³": ("Kubikmeter", "Kubikmeter"),
        "ha": ("Hektar", "Hektar"), "km/h": ("Kilometer pro Stunde", "Kilometer pro Stunde"),
        "°C": ("Grad Celsius", "Grad Celsius"), "°F": ("Grad Fahrenheit", "Grad Fahrenheit"),
        "h": ("Stunde", "Stunden"), "min": ("Minute", "Minuten"), "s": ("Sekunde", "Sekunden"),
        "kWh": ("Kilowattstunde", "Kilowattstunden"), "kW": ("Kilowatt", "Kilowatt"), "W": ("Watt", "Watt"),
        "V": ("Volt", "Volt"), "kB": ("Kilobyte", "Kilobyte"), "MB": ("Megabyte", "Megabyte"),
        "GB": ("Gigabyte", "Gigabyte"), "TB": ("Terabyte", "Terabyte"), "GHz": ("Gigahertz", "Gigahertz"),
        "°": ("Grad", "Grad"), "Std.": ("Stunde", "Stunden"), "Min.": ("Minute", "Minuten"),
        "Sek.": ("Sekunde", "Sekunden"), "Std": ("Stunde", "Stunden"), "Min": ("Minute", "Minuten"),
        "qm": ("Quadratmeter", "Quadratmeter"),
    },
    per={
        "Monat": "pro Monat", "Tag": "pro Tag", "Jahr": "pro Jahr", "Woche": "pro Woche", "Nacht": "pro Nacht",
        "Stunde": "pro Stunde", "Minute": "pro Minute", "Person": "pro Person", "Stück": "pro Stück",
        "h": "pro Stunde", "kg": "pro Kilogramm", "km": "pro Kilometer", "m²": "pro Quadratmeter",
    },
    fractions=_HALF,
    mixed="{whole}{part}",
    multiple=lambda number: "einmal" if number == 1 else f"{number_words.cardinal(number, 'de')}mal",
    dialled=_dialled,
    spaced_numbers=False,
    code_context=r"(?:code|pin|tan|kennwort|passwort|nummer|plz|postleitzahl|endet auf)(?: (?:ist|lautet))?(?: die)?",
    phone_context=r"\b(?:wählen sie|notruf|unter(?: der)?|nummer(?: ist)?(?: die)?|rufen sie(?: die)?|die|durchwahl)",
    short_number=lambda group: number_words.digits(group, "de") if group in _DIALLED else "",
)  # fmt: skip


def _ordinals(found: re.Match[str]) -> str | None:
    """2. Stock: an ordinal where an article or a preposition stands before it."""
    return _ordinal(int(found["number"]), before(found), noun_behind(found))


def _last(found: re.Match[str]) -> str | None:
    """Heute ist der 1. -> erste, at the end."""
    said = _ordinal(int(found["number"]), before(found)) if _OF_A_DAY.search(before(found)) else None
    return f"{said}." if said else None


def _street(found: re.Match[str]) -> str:
    return f"{found['name']}straße" if found["name"] else "Straße"


def _own() -> tuple[WrittenForm, ...]:
    return (
        form("ordinal", DIGITS, rf"(?P<number>[0-9]{{1,3}})[.](?:{_BEFORE_NOUN}|(?= ?[-–] ?[0-9]))", _ordinals),
        form("ordinal at the end", DIGITS, r"(?P<number>[12]?[0-9]|3[01])[.](?=\s*$)", _last),
        form("street", "ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÜ", r"(?P<name>[A-ZÄÖÜ]?[a-zäöüß]{1,30})str[.]|Str[.]", _street),
        *abbreviations(
            {
                "z. B.": "zum Beispiel", "d. h.": "das heißt", "u. a.": "unter anderem", "usw.": "und so weiter",
                "etc.": "et cetera", "bzw.": "beziehungsweise", "ca.": "circa", "inkl.": "inklusive",
                "exkl.": "exklusive", "zzgl.": "zuzüglich", "ggf.": "gegebenenfalls", "evtl.": "eventuell",
                "MwSt.": "Mehrwertsteuer", "MwSt": "Mehrwertsteuer", "Tel.": "Telefon", "z. T.": "zum Teil",
                "u. U.": "unter Umständen", "i. d. R.": "in der Regel", "o. Ä.": "oder Ähnliches",
                "usf.": "und so fort", "vgl.": "vergleiche", "max.": "maximal", "mind.": "mindestens",
                "min.": "mindestens", "Std.": "Stunden", "bspw.": "beispielsweise", "u.": "und",
                "Whg.": "Wohnung", "Hbf": "Hauptbahnhof", "gem.": "gemäß", "zw.": "zwischen",
                "Mo.-Fr.": "Montag bis Freitag", "Mo-Fr": "Montag bis Freitag", "Mo–Fr": "Montag bis Freitag",
                "m. E.": "meines Erachtens", "Abt.": "Abteilung", "PLZ": "Postleitzahl", "sog.": "sogenannte",
            },
            titles={
                "Dr.": "Doktor", "Prof.": "Professor", "Hr.": "Herr", "Fr.": "Frau", "St.": "Sankt",
                "Dipl.-Ing.": "Diplomingenieur",
            },
            numbered={
                "Nr.": "Nummer", "Art.": "Artikel", "S.": "Seite", "Kap.": "Kapitel", "Zi.": "Zimmer",
                "Hausnr.": "Hausnummer", "Abs.": "Absatz", "§": "Paragraf", "Tel.-Nr.": "Telefonnummer",
            },
            ending=("usw.", "etc.", "MwSt.", "o. Ä.", "usf.", "Std."),
        ),
    )  # fmt: skip


FORMS = forms_of(GERMAN, _own)
