"""`voicepipe languages`: what callers in each language get with a configuration, and what is missing."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from voicepipe import config
from voicepipe.agent import Agent
from voicepipe.base.errors import ConfigError, EngineError
from voicepipe.commands.cli_serve import about
from voicepipe.config import Config
from voicepipe.engines.asr.heard_languages import heard_languages, unheard
from voicepipe.engines.tts.spoken_languages import listed, spoken_by, spoken_in_part
from voicepipe.languages.agent_texts import left_in_english
from voicepipe.languages.known import LANGUAGES, language_of
from voicepipe.languages.neutral import NEUTRAL
from voicepipe.languages.speakable import speakable
from voicepipe.languages.tags import primary
from voicepipe.redaction.number_words import UNITS

OTHERS = ("pt", "nl", "ru", "hi", "ja", "zh", "ar", "ko")
"""Languages without a folder that the table has unless others are asked for."""
WRITTEN = ("1234", "14:30", "30.11.2026", "300 €")
"""A number, a time, a date and a price: a language says them in words, or leaves them to the voice."""
UNKNOWN = "?"
YES, NO = "yes", "-"


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """What callers in one language get."""

    tag: str
    heard: str
    """Whether the recogniser knows the language: YES, NO or UNKNOWN."""
    voice: str
    """The voice that speaks it; NO, or UNKNOWN."""
    turns: str
    """What tells whether a caller has finished: "words" beside the voice, or the "voice" and sentences' marks alone."""
    forms: str
    """What says numbers, times, dates and prices: "rules", or the "voice" as it reads them."""
    texts: str
    """The language of an agent's default texts."""
    cards: str
    """How card numbers are found in what is kept: in "words", too, or in "digits" alone."""
    missing: list[str] = field(default_factory=list)
    """In plain words, with what helps."""


def run(tags: Sequence[str], file: Path | None, *, as_json: bool = False) -> int:
    """Print the table for these languages, or for all that voicepipe has rules for and some others. Exit status 1 if
    one that was asked for is not heard or not spoken. Raises ConfigError."""
    for tag in tags:
        if not tag.replace("-", "").isalnum() or len(primary(tag)) not in (2, 3):
            raise ConfigError(f"languages: {tag!r} is no language; give tags such as de, fr or pt-BR")
    settings = config.load(file)
    with about(file):
        try:
            rows = asyncio.run(_rows(tuple(tags) or (*LANGUAGES, *OTHERS), settings))
        except EngineError as error:
            raise ConfigError(str(error)) from None
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False))
    else:
        _show(rows, settings)
    return int(bool(tags) and any(NO in (row.heard, row.voice) for row in rows))


async def _rows(tags: Sequence[str], settings: Config) -> list[LanguageRow]:
    heard = await asyncio.to_thread(heard_languages, settings)
    async with listed(settings) as voices:
        spoken = {tag: spoken_by(voices, "", tag) for tag in tags} if voices else {}
    return [_row(tag, settings, heard, spoken.get(tag)) for tag in tags]


def _row(tag: str, settings: Config, heard: frozenset[str] | None, spoken: tuple[str, bool] | None) -> LanguageRow:
    language, agent = language_of(tag), Agent("any", language=tag)
    unspoken = [text for text in WRITTEN if any(map(str.isdigit, speakable(text, tag)))]
    row = LanguageRow(
        tag,
        UNKNOWN if heard is None else YES if primary(tag) in heard else NO,
        UNKNOWN if spoken is None else spoken[0] if spoken[1] else NO,
        "words" if language.turn.is_known else "voice",
        "voice" if len(unspoken) == len(WRITTEN) else f"rules, not {', '.join(unspoken)}" if unspoken else "rules",
        language.name if language.texts else "English",
        "words" if primary(tag) in UNITS else "digits",
    )
    row.missing.extend(_missing(row, agent, settings, heard))
    return row


def _missing(row: LanguageRow, agent: Agent, settings: Config, heard: frozenset[str] | None) -> Iterator[str]:
    for said in unheard(agent, settings, heard):
        yield said.partition("; ")[2] or said
    if heard is None:
        yield "what the recogniser hears is not known: its model is not on this machine, or it is scripted"
    if row.voice == NO:
        yield f'no voice of engines.tts = "{settings.engines.tts}" speaks it'
    elif lacks := spoken_in_part(row.voice, settings):
        yield f"{lacks}: choose another voice"
    elif row.voice == UNKNOWN:
        yield "which languages the voice speaks is not known before it is loaded"
    if english := left_in_english(agent):
        yield f"an agent's file has to give {', '.join(english)}: they are English otherwise"
    if not language_of(agent.language).turn.is_known:
        yield "turns end later: no word tells that a sentence goes on"
    if primary(row.tag) not in UNITS:
        yield "card numbers that are written in words are kept in records (redaction)"


def _show(rows: Sequence[LanguageRow], settings: Config) -> None:
    engines = settings.engines
    headings = ("", "language", "heard", "voice", "turns by", "numbers by", "texts", "cards in")
    table = Table(*headings, caption=f'engines.asr = "{engines.asr}", engines.tts = "{engines.tts}"')
    for row in rows:
        name = language_of(row.tag).name.replace(NEUTRAL.name, "")
        table.add_row(row.tag, name, row.heard, row.voice, row.turns, row.forms, row.texts, row.cards)
    console = Console()
    console.print(table)
    alike: dict[str, list[str]] = {}
    for row in rows:
        for said in row.missing:
            alike.setdefault(said, []).append(row.tag)
    for said, tags in alike.items():
        console.print(f"{', '.join(tags)}: {said}", highlight=False, soft_wrap=True, markup=False)
