"""Calls in German, French, Spanish and Italian: in some a card number is told, in others only other numbers are."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from tests.redaction.said_numbers import as_one, in_groups, one_by_one, readable, say, with_doubles
from tests.redaction.transcripts import SHOWN, Line, Transcript, card


@dataclass(frozen=True)
class Phrases:
    """What people say around numbers."""

    asks: tuple[str, ...]
    begins: tuple[str, ...]
    fillers: tuple[str, ...]
    go_on: tuple[str, ...]
    waits: tuple[str, ...]
    asks_expiry: tuple[str, ...]
    asks_code: tuple[str, ...]
    repeats: str
    innocent: tuple[tuple[str, ...], ...]
    """Whole calls: the caller's lines and the agent's take turns. {phone}, {time}, {date}, {price}, {people},
    {booking} and {few} are filled in."""
    time: tuple[str, ...]
    date: tuple[str, ...]
    price: tuple[str, ...]
    thanks: str


DE = Phrases(
    asks=(
        "Wie möchten Sie bezahlen?",
        "Ihre Kartennummer, bitte?",
        "Nennen Sie mir bitte die Nummer Ihrer Karte.",
        "Ja?",
    ),
    begins=("", "also, ", "ja, das ist die ", "meine Kreditkarte ist ", "die Nummer ist ", "Moment, "),
    fillers=(" äh ", " ähm, ", ", Moment, ", ", ja, ", " und dann ", " dann ", ", also ", " Strich ", "... "),
    go_on=("ja?", "Ja, und weiter?", "mhm", "Gut, und dann?", "Bitte weiter.", "okay", "Und der Rest?", "Ich höre."),
    waits=("äh", "Moment bitte", "einen Moment noch", "warten Sie kurz", "sofort", "ja"),
    asks_expiry=("Und das Ablaufdatum?", "Bis wann ist die Karte gültig?", "Gültig bis?"),
    asks_code=("Und die Prüfnummer?", "Und die drei Ziffern auf der Rückseite?", "Und der Sicherheitscode?"),
    repeats="Das ist also {number}?",
    time=("{hour}:{minute}", "{hour} Uhr {minute}", "{hour_said} Uhr {minute_said}", "{hour}.{minute} Uhr"),
    date=("27.11.2026", "am 27. November", "am 27. November 2026", "am siebenundzwanzigsten", "Freitag", "morgen"),
    price=("{price},50 €", "{price} Euro", "{price_said} Euro", "{price_said} Euro fünfzig"),
    innocent=(
        (
            "ein Tisch für {people} {date} um {time}",
            "Und Ihre Telefonnummer?",
            "das ist die {phone}",
            "Für {people}, um {time}.",
        ),
        (
            "meine Nummer ist {phone}",
            "Können Sie das wiederholen?",
            "{phone}",
            "Für wie viele Personen?",
            "{few}",
            "Um wie viel Uhr?",
            "{time}",
        ),
        (
            "ich habe eine Buchung, {booking}",
            "Die {booking}, für {people} Personen?",
            "ja genau",
            "Das kostet {price}, Zimmer 214.",
            "und anrufen kann ich unter {phone}?",
            "Ja, bis {time}.",
        ),
        (
            "was kostet das",
            "Es kostet {price}, mit Frühstück {price}.",
            "und für {few} Nächte",
            "Das wären {price}.",
            "gut, ab {time} bitte",
        ),
        ("meine Telefonnummer lautet {phone}", "Danke, und die Buchungsnummer?", "{booking}", "Gut, {date} um {time}."),
    ),
    thanks="Vielen Dank, bis Freitag um 19:30 Uhr.",
)
FR = Phrases(
    asks=(
        "Comment souhaitez-vous payer ?",
        "Votre numéro de carte, s'il vous plaît ?",
        "Les chiffres de la carte ?",
        "Oui ?",
    ),
    begins=("", "alors, ", "oui c'est le ", "ma carte bleue c'est ", "le numéro c'est ", "attendez, ", "donc "),
    fillers=(
        " euh ",
        " euh, ",
        ", attendez, ",
        ", oui, ",
        " et puis ",
        " ensuite ",
        ", alors ",
        " tiret ",
        "... ",
        ", voilà, ",
    ),
    go_on=(
        "oui ?",
        "Oui, et ensuite ?",
        "d'accord",
        "Très bien, la suite ?",
        "Je vous écoute.",
        "continuez",
        "Allez-y.",
        "Et après ?",
    ),
    waits=("euh", "un instant", "attendez une seconde", "une minute s'il vous plaît", "je cherche", "oui"),
    asks_expiry=("Et la date d'expiration ?", "Elle expire quand ?", "Valable jusqu'à ?"),
    asks_code=("Et le cryptogramme ?", "Et les trois chiffres au dos ?", "Et le code de sécurité ?"),
    repeats="Donc c'est bien {number} ?",
    time=("{hour}:{minute}", "{hour}h{minute}", "{hour_said} heures {minute_said}", "{hour} h {minute}"),
    date=("27/11/2026", "le 27 novembre", "le 27 novembre 2026", "le vingt-sept novembre", "vendredi", "demain"),
    price=("{price},50 €", "{price} euros", "{price_said} euros", "{price_said} euros cinquante"),
    innocent=(
        (
            "une table pour {people} {date} à {time}",
            "Et votre numéro de téléphone ?",
            "c'est le {phone}",
            "Pour {people}, à {time}.",
        ),
        (
            "mon numéro c'est {phone}",
            "Vous pouvez répéter ?",
            "{phone}",
            "Pour combien de personnes ?",
            "{few}",
            "À quelle heure ?",
            "{time}",
        ),
        (
            "j'ai une réservation, {booking}",
            "La {booking}, pour {people} personnes ?",
            "oui c'est ça",
            "Cela fait {price}, chambre 214.",
            "et je peux vous joindre au {phone} ?",
            "Oui, jusqu'à {time}.",
        ),
        (
            "combien ça coûte",
            "C'est {price}, avec petit déjeuner {price}.",
            "et pour {few} nuits",
            "Cela ferait {price}.",
            "bien, à partir de {time}",
        ),
        (
            "mon téléphone c'est le {phone}",
            "Merci, et le numéro de réservation ?",
            "{booking}",
            "Bien, {date} à {time}.",
        ),
    ),
    thanks="Merci, à vendredi 19h30.",
)
ES = Phrases(
    asks=("¿Cómo desea pagar?", "¿Su número de tarjeta, por favor?", "¿Me dice los números de la tarjeta?", "¿Sí?"),
    begins=("", "pues, ", "sí, es el ", "mi tarjeta es ", "el número es ", "espere, ", "a ver, "),
    fillers=(
        " eh ",
        " este, ",
        ", espere, ",
        ", sí, ",
        " y luego ",
        " después ",
        ", vale, ",
        " guion ",
        "... ",
        ", a ver, ",
    ),
    go_on=("¿sí?", "Sí, ¿y luego?", "vale", "Muy bien, siga.", "Dígame.", "continúe", "¿Y el resto?", "Le escucho."),
    waits=("eh", "un momento", "espere un segundo", "un momentito por favor", "a ver", "sí"),
    asks_expiry=("¿Y la fecha de caducidad?", "¿Cuándo caduca?", "¿Y el vencimiento?"),
    asks_code=("¿Y el código de seguridad?", "¿Y los tres números de atrás?", "¿El CVV?"),
    repeats="Entonces es {number}, ¿correcto?",
    time=("{hour}:{minute}", "las {hour}:{minute}", "las {hour_said} y {minute_said}", "las {hour}.{minute} horas"),
    date=(
        "27/11/2026",
        "el 27 de noviembre",
        "el 27 de noviembre de 2026",
        "el veintisiete de noviembre",
        "el viernes",
        "mañana",
    ),
    price=("{price},50 €", "{price} euros", "{price_said} euros", "{price_said} pesos"),
    innocent=(
        (
            "una mesa para {people} {date} a {time}",
            "¿Y su número de teléfono?",
            "es el {phone}",
            "Para {people}, a {time}.",
        ),
        (
            "mi número es {phone}",
            "¿Puede repetirlo?",
            "{phone}",
            "¿Para cuántas personas?",
            "{few}",
            "¿A qué hora?",
            "{time}",
        ),
        (
            "tengo una reserva, {booking}",
            "¿La {booking}, para {people} personas?",
            "sí exacto",
            "Son {price}, habitación 214.",
            "¿y puedo llamar al {phone}?",
            "Sí, hasta {time}.",
        ),
        (
            "cuánto cuesta",
            "Cuesta {price}, con desayuno {price}.",
            "y por {few} noches",
            "Serían {price}.",
            "bien, a partir de {time}",
        ),
        ("mi teléfono es el {phone}", "Gracias, ¿y el número de reserva?", "{booking}", "Bien, {date} a {time}."),
    ),
    thanks="Gracias, hasta el viernes a las 19:30.",
)
IT = Phrases(
    asks=("Come desidera pagare?", "Il numero della carta, per favore?", "Mi dice le cifre della carta?", "Sì?"),
    begins=("", "allora, ", "sì, è il ", "la mia carta è ", "il numero è ", "aspetti, ", "dunque "),
    fillers=(
        " eh ",
        " ehm, ",
        ", aspetti, ",
        ", sì, ",
        " e poi ",
        " poi ",
        ", allora ",
        " trattino ",
        "... ",
        ", dunque, ",
    ),
    go_on=(
        "sì?",
        "Sì, e poi?",
        "va bene",
        "Benissimo, prosegua.",
        "Mi dica.",
        "continui pure",
        "E il resto?",
        "La ascolto.",
    ),
    waits=("eh", "un attimo", "aspetti un secondo", "un momento per favore", "allora", "sì"),
    asks_expiry=("E la data di scadenza?", "Quando scade?", "E la scadenza?"),
    asks_code=("E il codice di sicurezza?", "E le tre cifre sul retro?", "Il CVV?"),
    repeats="Quindi è {number}, giusto?",
    time=("{hour}:{minute}", "alle {hour}:{minute}", "alle {hour_said} e {minute_said}", "ore {hour}.{minute}"),
    date=("27/11/2026", "il 27 novembre", "il 27 novembre 2026", "il ventisette novembre", "venerdì", "domani"),
    price=("{price},50 €", "{price} euro", "{price_said} euro", "{price_said} euro e cinquanta"),
    innocent=(
        (
            "un tavolo per {people} {date} {time}",
            "E il suo numero di telefono?",
            "è il {phone}",
            "Per {people}, {time}.",
        ),
        ("il mio numero è {phone}", "Può ripetere?", "{phone}", "Per quante persone?", "{few}", "A che ora?", "{time}"),
        (
            "ho una prenotazione, {booking}",
            "La {booking}, per {people} persone?",
            "sì esatto",
            "Sono {price}, camera 214.",
            "e posso chiamare il {phone}?",
            "Sì, fino a {time}.",
        ),
        (
            "quanto costa",
            "Costa {price}, con colazione {price}.",
            "e per {few} notti",
            "Sarebbero {price}.",
            "bene, da {time}",
        ),
        ("il mio telefono è {phone}", "Grazie, e il numero di prenotazione?", "{booking}", "Bene, {date} {time}."),
    ),
    thanks="Grazie, a venerdì alle 19:30.",
)
PHRASES = {"de": DE, "fr": FR, "es": ES, "it": IT}
WRITTEN_BETWEEN = (" ", " ", "-", ".", ", ")


def _written(chance: random.Random, digits: str) -> str:
    """As recognisers write digits: "45 39 14 88", "4539-1488"."""
    size = chance.choice([1, 2, 3, 4, 4, 8])
    return chance.choice(WRITTEN_BETWEEN).join(digits[at : at + size] for at in range(0, len(digits), size))


def _told(chance: random.Random, digits: str, language: str) -> str:
    """A part of a number, in one of the language's ways: so that a person hears just these digits, and not "soixante
    onze" for 6011."""
    told = ""
    while readable(told, language) != digits:
        told = _in_some_way(chance, digits, language)
    return told


def _in_some_way(chance: random.Random, digits: str, language: str) -> str:
    ways = (
        _written,
        partial(one_by_one, language=language),
        partial(with_doubles, language=language),
        partial(in_groups, 2, language),
        partial(in_groups, 2, language),
        partial(in_groups, 3, language),
        partial(in_groups, 4, language),
    )
    return chance.choice(ways)(chance, digits)


def _turns(chance: random.Random, digits: str, language: str, fragments: list[str]) -> Iterator[Line]:
    says, size = PHRASES[language], chance.choice([4, 4, 4, 6, 8, 12, len(digits)])
    parts = [digits[at : at + size] for at in range(0, len(digits), size)]
    said = chance.choice(says.begins)
    for at, part in enumerate(parts):
        told = _told(chance, part, language)
        fragments += [told] if len(part) >= 4 else []
        said += told
        if at + 1 == len(parts):
            break
        if chance.random() < 0.5:
            said += chance.choice(says.fillers) if chance.random() < 0.5 else ", "
            continue
        yield Line("heard", said)
        answer = chance.choice(says.go_on)
        if chance.random() < 0.3:
            again = _told(chance, part, language)
            fragments += [again] if len(part) >= 4 else []
            answer = f"{again}, {answer}"
        yield Line("said", answer)
        if chance.random() < 0.2:
            yield Line("heard", chance.choice(says.waits))
            yield Line("said", chance.choice(says.go_on))
        said = ""
    yield Line("heard", said + chance.choice(["", "", "."]))


def with_card(chance: random.Random, language: str) -> Transcript:
    digits, code = card(chance, right=chance.random() < 0.7), "".join(chance.choices("123456789", k=3))
    says, fragments = PHRASES[language], list[str]()
    lines = [Line("said", chance.choice(says.asks)), *_turns(chance, digits, language, fragments)]
    if chance.random() < 0.5:
        fragments.append(_told(chance, digits, language))
        lines.append(Line("said", says.repeats.format(number=fragments[-1])))
    if chance.random() < 0.6:
        lines.append(Line("said", chance.choice(says.asks_expiry)))
        lines.append(Line("heard", chance.choice(["12/27", "12 27", f"{say(language, 12)} {say(language, 27)}"])))
        lines.append(Line("said", chance.choice(says.asks_code)))
        fragments.append(chance.choice([code, one_by_one(chance, code, language), as_one(chance, code, language)]))
        lines.append(Line("heard", chance.choice(["", *says.fillers]).strip(" ,") + " " + fragments[-1]))
    return Transcript((*lines, Line("said", says.thanks)), (digits,), tuple(fragments))


def with_secrets(language: str, seed: int, count: int = 60) -> list[Transcript]:
    chance = random.Random(f"{language}{seed}")
    return [with_card(chance, language) for _ in range(count)]


def innocent(chance: random.Random, language: str) -> Transcript:
    """A call with other numbers."""
    says = PHRASES[language]
    begin = {"de": ("030", "0171"), "fr": ("06", "01"), "es": ("6", "91"), "it": ("02", "333")}[language]
    size = {"de": 10, "fr": 10, "es": 9, "it": 10}[language]
    phone = chance.choice(begin)
    phone += "".join(chance.choices("0123456789", k=size - len(phone)))
    hour, minute, price = chance.randrange(11, 23), chance.choice([15, 30, 45]), chance.randrange(10, 400)
    values = {"hour": hour, "minute": minute, "price": price} | {
        f"{name}_said": say(language, value) for name, value in (("hour", hour), ("minute", minute), ("price", price))
    }
    booking, few = "".join(chance.choices("0123456789", k=6)), chance.choice([2, 3, 4, 8, 12])
    told = {
        "phone": _told(chance, phone, language),
        "booking": chance.choice([booking, _told(chance, booking, language)]),
        "few": chance.choice([str(few), say(language, few)]),
        "people": chance.choice([str(few), say(language, few)]),
    } | {name: chance.choice(getattr(says, name)).format(**values) for name in ("time", "date", "price")}
    lines = [line.format(**told) for line in chance.choice(says.innocent)]
    return Transcript(tuple(Line("said" if at % 2 else "heard", line) for at, line in enumerate(lines)))


def without_secrets(language: str, seed: int, count: int = 60) -> list[Transcript]:
    chance = random.Random(f"{language}{seed} innocent")
    return [innocent(chance, language) for _ in range(count)]


def leaks(transcript: Transcript, kept: list[str], language: str) -> list[str]:
    """What can still be read of the secrets in these texts, one after the other."""
    together = "\n".join(kept)
    digits = readable(together, language)
    found = [fragment for fragment in transcript.fragments if fragment in together]
    for secret in transcript.secrets:
        found += [part for at in range(len(secret) - SHOWN + 1) if (part := secret[at : at + SHOWN]) in digits]
    return found
