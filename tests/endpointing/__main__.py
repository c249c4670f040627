"""How long turns wait, by hand: `make bench-endpointing`, or `python -m tests.endpointing`.

Plays the probes' clips, each in three rooms, to the ear and the default recogniser, and once more as a telephone
brings them; then shows what the rule of waiting makes of all silences, also with less evidence. `--set development`:
the sentences that rules are tried on first (needs `voicepipe models pull piper-joe`). Takes half an hour on two cores;
`--kept FOLDER` keeps what was heard, and goes on where it stopped.

`--set foreign --config configs/cpu-multilingual.toml`: people's prompts in other languages, and how well each kind of
evidence orders them. Takes ten minutes.
"""

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import track
from rich.table import Table

from latency_probes.clips import FOREIGN, HESITATION, HUMAN
from latency_probes.stats import upper_bound
from tests.endpointing import recordings
from tests.endpointing.heard import Heard, Listener, by_telephone
from tests.endpointing.judged import (
    Judged,
    Wait,
    as_said,
    by_degrees,
    in_order,
    judge,
    without_full_stop,
    without_turn_model,
)
from tests.endpointing.recordings import Recording
from voicepipe import config as configs
from voicepipe.base.figures import keep, percentile
from voicepipe.config import Config
from voicepipe.config.agent_store import open_agents
from voicepipe.engines.base import Engines
from voicepipe.languages.known import language_of
from voicepipe.languages.neutral import NEUTRAL
from voicepipe.pop.running import engines_for
from voicepipe.turn.endpoint import EndpointConfig, Endpointer, Evidence

ROOMS = 3
"""Each of the probes' clips is heard in its own and in two more."""
PATIENT_S = 600
"""A recogniser that shares its processor with others does not hang."""


def main() -> None:
    cli = argparse.ArgumentParser(prog="python -m tests.endpointing")
    cli.add_argument("--set", dest="part", choices=("probes", "development", "held_out", "foreign"), default="probes")
    cli.add_argument("--config", type=Path, default=Path("configs/default.toml"), help="whose engines hear")
    cli.add_argument("--json", type=Path, help="file for the figures")
    cli.add_argument("--kept", type=Path, help="folder for what is heard")
    options = cli.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kept = options.kept or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        if options.part == "probes":
            made = [*recordings.probes(ROOMS), *recordings.people()]
        elif options.part == "foreign":
            made = [recording for language in FOREIGN.values() for recording in recordings.people(language)]
        else:
            made = [*recordings.development(options.part)]
        files = kept / f"{options.part}.jsonl", kept / f"{options.part}-telephone.jsonl"
        asyncio.run(hear(configs.load(options.config), made, *files))
        full, narrow = map(kept_rows, files)
    if options.part == "foreign":
        for shown in (by_language([*full.values()]), waits_by_language([*full.values()])):
            Console().print(shown)
        return
    own = {each.id for each in made if each.own}
    people = [full.pop(name) for name in list(full) if name.startswith(HUMAN)]
    rooms = {
        "people": people,
        "quiet": [row for row in full.values() if row.noise == "quiet"],
        "noise": [row for row in full.values() if row.noise != "quiet"],
        "all": [*full.values()],
        "own room": [row for row in full.values() if row.id in own],
        "own room, words as said": [as_said(row) for row in full.values() if row.id in own],
        "own room, by telephone": [row for row in narrow.values() if row.id in own and not row.id.startswith(HUMAN)],
    }
    rows = compared({room: heard for room, heard in rooms.items() if heard})
    Console().print(table(rows))
    ordered = {room: in_order(heard, Endpointer(EndpointConfig())) for room, heard in rooms.items() if heard}
    told = ", ".join(f"{room} {100 * share:.1f} %" for room, share in ordered.items())
    Console().print(f"In order by the evidence: {told}")
    keep(options.json, {"rows": rows, "in_order": ordered})


def by_language(rows: Sequence[Heard]) -> Table:
    """Share of the pairs of a whole sentence and a begun one that are in order, by all the evidence, by all but the
    words, and by each kind alone."""
    shown = Table("pairs in order", *EVIDENCE)
    for language in FOREIGN.values():
        heard = [row for row in rows if row.language == language]
        shares = (in_order(heard, rule(language)) for rule in EVIDENCE.values())
        shown.add_row(language, *(f"{100 * share:.0f} %" for share in shares))
    return shown


def waits_by_language(rows: Sequence[Heard]) -> Table:
    """What callers wait for and whom it interrupts, by a language's own rules and as if it had none."""
    shown = Table("waits", "rules", "finished: p50, p95 (ms)", "cut in", "cut in at pauses of 300 to 700 ms")
    for language in FOREIGN.values():
        heard = [row for row in rows if row.language == language]
        for rule in ("all", "without words"):
            each = row(language, rule, heard, by_degrees(EVIDENCE[rule](language)))
            waits = f"{each.finished_ms['p50']:.0f}, {each.finished_ms['p95']:.0f}"
            shown.add_row(language, rule, waits, each.interrupted, each.cut_ins)
    return shown


class _Alone(Endpointer):
    """Goes by one kind of evidence."""

    def __init__(self, seen: Callable[[Evidence], float]) -> None:
        super().__init__(EndpointConfig())
        self._seen = seen

    def log_odds(self, evidence: Evidence) -> tuple[float, str]:
        return self._seen(evidence), ""


EVIDENCE: dict[str, Callable[[str], Endpointer]] = {
    "all": lambda language: Endpointer(EndpointConfig(), turn=language_of(language).turn),
    "without words": lambda language: Endpointer(EndpointConfig(), turn=NEUTRAL.turn),
    "full stop": lambda language: _Alone(lambda evidence: evidence.full_stop or 0.0),
    "turn model": lambda language: _Alone(lambda evidence: evidence.voice or 0.0),
    "melody": lambda language: _Alone(lambda evidence: evidence.pitch),
}


def kept_rows(file: Path) -> dict[str, Heard]:
    """What was heard, by the recording's name."""
    lines = file.read_text().splitlines() if file.exists() else []
    return {row.id: row for row in (msgspec.json.decode(line, type=Heard) for line in lines)}


async def hear(config: Config, made: Sequence[Recording], full: Path, narrow: Path) -> None:
    """Adds what has not been heard yet to both files, a line for each recording."""
    config = msgspec.structs.replace(config, whisper=msgspec.structs.replace(config.whisper, stall_s=PATIENT_S))
    async with engines_for(config, open_agents(config)) as engines:
        for file, by_phone in ((full, False), (narrow, True)):
            rows = kept_rows(file)
            missing = [each for each in made if each.id not in rows and (each.own or not by_phone)]
            with file.open("a") as out:
                for recording in track(missing, f"hearing {file.stem}"):
                    print(msgspec.json.encode(await one(engines, recording, by_phone)).decode(), file=out, flush=True)


async def one(engines: Engines, recording: Recording, by_phone: bool) -> Heard:
    """What is heard of it."""
    pcm = by_telephone(recording.pcm) if by_phone else recording.pcm
    gaps = await Listener(engines, narrow=by_phone, language=recording.language).hear(pcm)
    return Heard(
        recording.id, recording.text, recording.kind, recording.noise, recording.end_ms, gaps, recording.language
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One rule of waiting in one kind of room."""

    room: str
    rule: str
    finished_ms: dict[str, float]
    """What callers wait who have finished: "p50", "p75", "p95"."""
    interrupted: str
    """Of these, who were interrupted in the middle."""
    cut_ins: str
    """At pauses of 300 to 700 ms inside a phrase, with the one-sided 95 % upper bound."""
    cut_ins_people: str
    """At pauses as long as people's."""
    unfinished: str
    """Utterances that end unfinished, and are answered within 0.8 to 1.5 s."""


def compared(rooms: dict[str, list[Heard]]) -> list[Row]:
    """Rules side by side in each room."""
    config = EndpointConfig()
    rules: dict[str, Wait] = {
        "default": by_degrees(Endpointer(config)),
        "without the full stop": without_full_stop(by_degrees(Endpointer(config))),
        "without the turn model": without_turn_model(by_degrees(Endpointer(config))),
        "eagerness low": by_degrees(Endpointer(config, "low")),
        "eagerness high": by_degrees(Endpointer(config, "high")),
        "cut_in_ms 1500": by_degrees(Endpointer(EndpointConfig(cut_in_ms=1500))),
        "cut_in_ms 1800": by_degrees(Endpointer(EndpointConfig(cut_in_ms=1800))),
    }
    return [row(room, name, heard, wait) for room, heard in rooms.items() for name, wait in rules.items()]


def row(room: str, rule: str, heard: list[Heard], wait: Wait) -> Row:
    short, long = judge(heard, wait, "pause_inside"), judge(heard, wait, HESITATION)
    waits = {f"p{percent}": percentile(short.finished_ms, percent) or 0.0 for percent in (50, 75, 95)}
    return Row(
        room,
        rule,
        waits,
        f"{short.interrupted} of {len(short.finished_ms) + short.interrupted}",
        rate(short),
        rate(long),
        f"{sum(800 <= ms <= 1500 for ms in short.unfinished_ms)} of {len(short.unfinished_ms)}",
    )


def rate(judged: Judged) -> str:
    """With its one-sided 95 % upper bound, as if each pause had been drawn once."""
    bound = upper_bound(round(judged.cut_ins), judged.pauses) or 0.0
    return f"{100 * judged.cut_ins / max(1, judged.pauses):.1f} % of {judged.pauses} (≤ {100 * bound:.1f} %)"


def table(rows: list[Row]) -> Table:
    columns = ("", "rule", "finished: p50, p75, p95 (ms)", "cut in", "cut in at pauses of 300 to 700 ms")
    made = Table(*columns, "at people's", "unfinished: 0.8 to 1.5 s", box=None, header_style="dim")
    for each in rows:
        waits = ", ".join(f"{ms:.0f}" for ms in each.finished_ms.values())
        made.add_row(each.room, each.rule, waits, each.interrupted, each.cut_ins, each.cut_ins_people, each.unfinished)
    return made


if __name__ == "__main__":
    main()
