"""The words for digits, and the words between them. English in full; of six other languages the digits and the numbers
below a hundred."""

import re
from enum import IntEnum, auto

from voicepipe.languages.en import words as english


class Kind(IntEnum):
    """The role of a word in finding digits."""

    UNIT = auto()
    """0 to 9."""
    TEEN = auto()
    """Two digits in one word: "eleven", "einundvierzig"."""
    TEN = auto()
    """ "twenty", "thirty": a unit may follow."""
    HUNDRED = auto()
    THOUSAND = auto()
    TIMES = auto()
    """"double": the next digit counts so often."""
    PLURAL = auto()
    """"ones" in "four ones": the digit counts so often."""
    PERHAPS = auto()
    """"oh", "for": a digit only beside digits."""
    FILLER = auto()
    """May be between the digits of one number."""
    COUNTED = auto()
    """ "digits", "moment": a single digit before it belongs to no number."""
    NAMED = auto()
    """"phone", "booking": the number behind it is mostly of that kind."""
    MEASURED = auto()
    """"people", "euros": the number before it ends there, and its kind is known."""
    PLAIN = auto()
    """"at", "until": neither a filler nor a misheard digit."""
    APART = auto()
    """ "or": what follows is another number."""


LETTER_APOSTROPHE = "ʼ"
"""Replaces the apostrophe of "it's" here, since it is a letter."""
Word = tuple[Kind, str]
"""A word's kind, and its digits."""

UNITS = {
    "en": " ".join(english.UNITS[:10]),
    "de": "null eins zwei drei vier fünf sechs sieben acht neun",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
    "pt": "zero um dois três quatro cinco seis sete oito nove",
}
MORE_UNITS = {
    "en": "nought:0 naught:0 aught:0 nil:0 niner:9 fife:5",
    "de": "zwo:2 fuenf:5 ein:1 eine:1",
    "fr": "une:1",
    "es": "un:1 una:1",
    "it": "un:1 una:1",
    "nl": "één:1",
    "pt": "tres:3 uma:1 duas:2 meia:6",
}
TEENS = {
    "en": " ".join(english.UNITS[10:]),
    "de": "zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "fr": "dix onze douze treize quatorze quinze seize",
    "es": "diez once doce trece catorce quince dieciséis diecisiete dieciocho diecinueve",
    "it": "dieci undici dodici tredici quattordici quindici sedici diciassette diciotto diciannove",
    "nl": "tien elf twaalf dertien veertien vijftien zestien zeventien achttien negentien",
    "pt": "dez onze doze treze catorze quinze dezesseis dezessete dezoito dezenove",
}
TENS = {
    "en": " ".join(english.TENS),
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "it": "venti trenta quaranta cinquanta sessanta settanta ottanta novanta",
    "nl": "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
    "pt": "vinte trinta quarenta cinquenta sessenta setenta oitenta noventa",
}
STRESSED = {"dos": "dós", "tres": "trés", "seis": "séis", "tre": "tré"}
"""As these are written at the end of a longer word: "veintidós", "trentatré"."""
DOUBTFUL = set("un une una um uma ein eine een due sei once sept elf doze seize meia".split())
"""Words that are digits only in their own language: elsewhere they are other words."""
SHARED = set("six zero null".split())
"""Words that are digits in every language, and no evidence of one."""

PERHAPS = {"oh": "0", "o": "0", "for": "4", "to": "2", "too": "2", "won": "1", "ate": "8", "tree": "3"}
TIMES = {"double": "2", "triple": "3", "treble": "3", "quadruple": "4", "doppel": "2", "dupla": "2", "doble": "2"}

FILLERS = """
    uh um uhm er erm ah eh hm hmm mm mhm huh and then plus dash hyphen minus space blank comma dot point
    period full stop slash let me us see look check hold on go ahead wait a sec just is are was it's its it
    the that that's this there here these those they they're there's so ok okay yes yeah yep yup right alright
    sure correct exactly good great fine perfect well now next please thanks thank you sorry pardon again no i
    i'm i've got have had with by my your our rest remaining last first final starts starting begins beginning
    ends ending middle third group block part half others other another followed following continue continues
    goes comes coming after finally number numbers digit digits figure figures listening ready get said say
    saying repeat could would can will do did what keep reading of in as card und dann ähm äh also ja nein
    moment bitte weiter danke ist die der das strich et alors euh oui voilà ensuite puis merci tiret y luego
    pues sí entonces gracias guion e poi allora sì ecco dunque grazie en dan ja dus streepje ー depois então sim
    agora né espera
"""
COUNTED = "digit digits figure figures number numbers moment second seconds minute more times group groups time thing"
NAMED = f"""
    {" ".join((*english.NUMBERED_PLACES, *english.NUMBERED_RECORDS))} phone telephone mobile cell cellphone landline
    extension ext fax table birthday birth born total price telefon telefonnummer handynummer buchung bestellung
    zimmer tisch rechnung postleitzahl kundennummer téléphone commande réservation chambre teléfono móvil pedido reserva
    habitación telefono cellulare ordine prenotazione camera telefoon boeking kamer telefone celular quarto
"""
MEASURED = """
    people person persons guests adults children kids seats tickets rooms tables nights days weeks
    months years year hours hour minutes o'clock oclock am pm euros euro dollars pounds cents bucks percent
    degrees km miles kg metres meters uhr personen leute gäste erwachsene kinder nächte tage prozent grad
    personnes heures nuits jours personas horas noches días persone ore notti giorni uur nachten dagen pessoas
    noites dias
"""
PLAIN = """
    at until till from before around about today tonight tomorrow costs name call called address street bis
    von vom à de du las hasta alle fino om tot van às até
"""
ASKED = re.compile(
    r"""(?ix)\b(?:
    how\ many\ (?!digits|numbers) | (?:what|which)\ (?:\w+\ )?(?:time|date|day|year) | when\b(?!\ you)
    | (?:your|which|what)\ (?:\w+\ ){0,2}(?:phone|telephone|mobile|birthday|postcode|zip|booking|reservation)
    | date\ of\ birth
    | telefonnummer | wie\ viele | wann | um\ wie\ viel
    | téléphone | combien | quand | quelle\ heure
    | teléfono | cuánt[ao]s | cuándo | qué\ hora
    | telefono | quant[ei] | quando | che\ ora
    | telefoon | hoeveel | wanneer | hoe\ laat
    | telefone | quant[ao]s | que\ horas
    )\b"""
)
"""Words of the agent after which the next numbers are no part of a card's."""
CARD = set("""
    card cards credit debit visa mastercard amex maestro digits cvc cvv expiry expire expires expiration karte
    kreditkarte kartennummer bancaire bleue crédit crédito credito tarjeta kaart creditcard kaartnummer cartão
    cartao
""".split())  # fmt: skip
"""Words that indicate a card number, before or after them."""

WORDS: dict[str, Word] = {}
"""The meaning of words in every language."""
ABROAD: dict[str, dict[str, Word]] = {}
"""The meaning of `DOUBTFUL` words, by language."""
EVIDENCE: dict[str, set[str]] = {}
"""Words that are evidence of the languages in which they occur."""


def _joined(language: str, units: dict[str, str], tens: dict[str, str]) -> dict[str, str]:
    """Numbers below a hundred that a language writes as one word."""
    pairs = [(unit, ten, ten_digits[0] + digit)
             for unit, digit in units.items() if digit != "0" for ten, ten_digits in tens.items()]  # fmt: skip
    match language:
        case "de":
            return {f"{unit}und{ten}": digits for unit, ten, digits in pairs}
        case "nl":
            return {f"{unit}{'ën' if unit.endswith('e') else 'en'}{ten}": digits for unit, ten, digits in pairs}
        case "it":
            return {
                f"{ten[:-1] if unit[0] in 'uo' else ten}{its}": digits
                for unit, ten, digits in pairs for its in (unit, STRESSED.get(unit, unit))
            }  # fmt: skip
        case "es":
            return {f"veinti{its}": digits for unit, ten, digits in pairs if ten == "veinte"
                    for its in (unit, STRESSED.get(unit, unit))}  # fmt: skip
    return {}


def _learn_digits(language: str) -> None:
    units = dict(zip(UNITS[language].split(), "0123456789", strict=True))
    units |= {word: digit for word, _, digit in (pair.partition(":") for pair in MORE_UNITS[language].split())}
    first = 20
    tens = {word: str(first + 10 * index) for index, word in enumerate(TENS[language].split())}
    teens = {word: str(number) for number, word in enumerate(TEENS[language].split(), 10)}
    for kind, words in ((Kind.UNIT, units), (Kind.TEEN, teens | _joined(language, units, tens)), (Kind.TEN, tens)):
        for word, digits in words.items():
            if word in DOUBTFUL and language != "en":
                ABROAD.setdefault(word, {})[language] = (kind, digits)
                continue
            WORDS[word] = (kind, digits)
            if language != "en" and word not in SHARED:
                EVIDENCE.setdefault(word, set()).add(language)


def _learn() -> None:
    for kind, words in (
        (Kind.PLAIN, PLAIN),
        (Kind.FILLER, FILLERS),
        (Kind.MEASURED, MEASURED),
        (Kind.NAMED, NAMED),
        (Kind.COUNTED, COUNTED),
        (Kind.APART, "or oder oppure"),
        (Kind.HUNDRED, "hundred"),
        (Kind.THOUSAND, "thousand"),
    ):
        WORDS.update(dict.fromkeys(words.replace("'", LETTER_APOSTROPHE).split(), (kind, "")))
    WORDS.update({word: (Kind.PERHAPS, digit) for word, digit in PERHAPS.items()})
    WORDS.update({word: (Kind.TIMES, times) for word, times in TIMES.items()})
    for language in UNITS:
        _learn_digits(language)
    for digit, word in enumerate(UNITS["en"].split()):
        WORDS[f"{word}es" if word == "six" else f"{word}s"] = (Kind.PLURAL, str(digit))
    CARD.update([f"{word}{LETTER_APOSTROPHE}s" for word in CARD])
    WORDS.update({"ohs": (Kind.PLURAL, "0"), "zeroes": (Kind.PLURAL, "0")})


_learn()
