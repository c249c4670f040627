"""`voicepipe records`: the calls that a PoP keeps, or all PoPs of a directory; one of them in full; what they cost; to
delete them."""

import math
import re
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote, urlencode

import msgspec
from rich.console import Console
from rich.markup import escape as unmarked
from rich.table import Table

from voicepipe.base.errors import ConfigError
from voicepipe.base.figures import for_tables
from voicepipe.commands import fleet
from voicepipe.commands.remote_server import RemoteServer

RECORDS = "/v1/records"
LEAST = 1e-9
"""The least amount of money; below it 0.00 is shown."""
UNSURE = {
    "cut_off": "This directory is cut off from the bus, and may not know of all PoPs: ask again, or ask another one.",
    "forgets": "This directory remembers PoPs for a day, and until it ends: it does not know of one that has been down "
               "for longer. Set directory.known_pops.",
}  # fmt: skip
"""What an incomplete deletion's `unsure` means."""
AGO = re.compile(r"(\d+(?:\.\d+)?)([mhd])")
SECONDS = {"m": 60, "h": 3600, "d": 86_400}


class RecordsQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A question about records, and the server that is asked."""

    server: RemoteServer
    as_json: bool

    def of(self, path: str, parameters: Mapping[str, Any], method: Literal["GET", "DELETE"] = "GET") -> Any:
        """The answer. Raises ConfigError: there is none, or it is an error."""
        sent = {name: value for name, value in parameters.items() if value not in (None, "")}
        where = f"{path}?{urlencode(sent)}" if sent else path
        return self.server.asked(method, where)


def listed(asked: RecordsQuery, *, since: str, until: str, limit: int, **conditions: str) -> int:
    """Print calls, the newest first. `conditions`: tenant, agent, caller, reason. Raises ConfigError."""
    said = asked.of(RECORDS, _time_of(since, until) | {"limit": limit} | conditions)
    if asked.as_json:
        return _json(said)
    console = for_tables()
    console.print(_table(said["data"]))
    if said["next"]:
        console.print(f"These are the newest {limit}; --limit, --since and --until show others.", style="dim")
    return _told_missing(console, said)


def one(asked: RecordsQuery, call_id: str) -> int:
    """Print the record of a call. Raises ConfigError."""
    record = asked.of(_address(call_id), {})
    if asked.as_json:
        return _json(record)
    console = for_tables()
    console.print(f"[bold]{escape(record['id'])}[/]  {_time(record['began'])}, {_lasted(record)}, "
                  f"{escape(_parties(record))}, agent {escape(record['agent'])}, {_ended(record)} "
                  f"{escape(record['transferred_to'])}".rstrip())  # fmt: skip
    figures = (f"{record['turns']} turns", _ms("p50", record["p50_ms"]), _ms("p95", record["p95_ms"]),
               f"{record['late']} late", f"{record['missed']} missed", f"{record['cut_ins']} cut in on",
               f"cost {_money(record['cost'])}" if record["cost"] is not None else "")  # fmt: skip
    console.print(", ".join(filter(None, figures)), style="dim")
    if hook := record.get("hook"):
        why = f": {hook['why']}" if hook["why"] else ""
        console.print(escape(f"hook of {hook['agent']}, {hook['outcome']} after {hook['ms']:.0f} ms{why}"), style="dim")
    if record.get("trace"):  # A directory may ask a PoP of an older version.
        console.print(f"trace {escape(record['trace'])}", style="dim")
    if values := {name: value for name, value in record.get("variables", {}).items() if value}:
        console.print(escape(", ".join(f"{name}: {value}" for name, value in values.items())), style="dim")
    for said in record["said"]:
        console.print()
        if said["heard"]:
            console.print(f"[bold]caller[/]  {escape(said['heard'])}")
        for tool in said["tools"]:
            took = f"{tool['took']:.0f} ms" if tool.get("took") is not None else ""
            outcome = "failed" if tool.get("failed") else escape(tool.get("result", "")[:100])
            console.print(
                f"[dim]tool    {escape(tool['name'])}({escape(tool.get('arguments', ''))}) {took} {outcome}[/]"
            )
        console.print(f"[bold]agent[/]   {escape(said['answered']) or '[dim](nothing)[/]'}")
        console.print(f"        {_remarks(said)}", style="dim")
    return 0


def delete(asked: RecordsQuery, call_id: str) -> int:
    """Delete the record of a call. Raises ConfigError: it goes on, or there is none."""
    said = asked.of(_address(call_id), {}, "DELETE")
    if asked.as_json:
        return _json(said)
    for_tables().print(f"Deleted: {escape(said['id'])}")
    return 0


def delete_matching(asked: RecordsQuery, *, caller: str, tenant: str, since: str, until: str) -> int:
    """Delete the records of all calls from exactly this number, of this tenant and of this time; exit status 1: some
    may be left. Raises ConfigError."""
    said = asked.of(RECORDS, _time_of(since, until) | {"caller": caller, "tenant": tenant}, "DELETE")
    if asked.as_json:
        return _json(said, not said["complete"])
    console = for_tables()
    console.print(f"Deleted: {_calls(said['deleted'])}{f' from {escape(caller)}' if caller else ''}{_where(said)}")
    if caller and not said["deleted"] and said["complete"]:
        console.print("Give the whole number: --caller and its last digits show it.", style="dim")
    if said["in_progress"]:
        console.print(f"[yellow]Kept, since still in progress: {escape(', '.join(said['calls_in_progress']))}. Delete "
                      "again after that.[/]")  # fmt: skip
    if said["not_permitted"]:
        console.print(f"[yellow]Kept, since this key may not delete them: {_calls(said['not_permitted'])} of no tenant."
                      " The operator deletes them, with the key of http.operator_key_env (--key-env).[/]")  # fmt: skip
    if said.get("unsure"):
        console.print(f"[yellow]{UNSURE[said['unsure']]}[/]")
    _told_missing(console, said, "and what they keep of such calls may still be there (ask again)")
    return 0 if said["complete"] else 1


def costs(asked: RecordsQuery, *, since: str, until: str, by: str) -> int:
    """Print the cost of calls. Raises ConfigError."""
    said = asked.of("/v1/costs", _time_of(since, until) | {"by": by})
    if asked.as_json:
        return _json(said)
    made = fleet.headed(by, "PoP", "region", ">calls", ">minutes", ">cost", ">a minute", ">1,000 tokens")
    for row in said["data"]:
        made.add_row(row["name"], row["pop"], row["region"], str(row["calls"]), f"{row['minutes']:.1f}",
                     *(_money(row[name]) for name in ("cost", "cost_per_minute", "cost_per_1000_tokens")))  # fmt: skip
    console = for_tables()
    console.print(made)
    if said.get("host_cost") is not None:
        console.print(f"The host cost {_money(said['host_cost'])} in this time; {_money(said['idle_cost'])} of it was "
                      "for places that stood empty.")  # fmt: skip
    elif any(row["cost"] is None for row in said["data"]):
        console.print("No price is known where there is none: set pop.price_per_hour.", style="dim")
    return _told_missing(console, said)


def escape(text: str) -> str:
    """A text for a terminal: no markup, and no control characters, which strangers may have sent."""
    return unmarked("".join(char if char.isprintable() else " " for char in text))


def when(text: str, option: str = "--since") -> float | None:
    """Unix seconds of "30m", "2h", "7d" ago, or of a date such as "2026-11-27 18:00" (this machine's time); empty:
    None. Raises ConfigError, which names the option."""
    if not text:
        return None
    if ago := AGO.fullmatch(text):
        return time.time() - float(ago[1]) * SECONDS[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise ConfigError(f"{option} {text}: give a time ago, as 30m, 2h or 7d, or a date, as 2026-11-27") from None


def _time_of(since: str, until: str) -> dict[str, Any]:
    """The time that the options give. Raises ConfigError."""
    return {"since": when(since), "until": when(until, "--until")}


def _address(call_id: str) -> str:
    return f"{RECORDS}/{quote(call_id, safe='')}"


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _table(rows: list[dict[str, Any]]) -> Table:
    made = fleet.headed("began", "lasted", "caller", "agent", "ended",
                        ">turns", ">p95 ms", ">late", ">missed", ">cut in", ">cost", "id")  # fmt: skip
    for row in rows:
        made.add_row(
            _time(row["began"]), _lasted(row), escape(_parties(row)), escape(row["agent"]), _ended(row),
            str(row["turns"]), "" if row["p95_ms"] is None else f"{row['p95_ms']:.0f}",
            *(str(row[name] or "") for name in ("late", "missed", "cut_ins")), _money(row["cost"]), escape(row["id"]),
        )  # fmt: skip
    return made


def _told_missing(console: Console, said: Mapping[str, Any], so: str = "and what they keep is not here") -> int:
    if missing := said.get("missing"):
        console.print(f"[yellow]These PoPs did not answer, {so}: {', '.join(missing)}[/]")
    return 1 if missing else 0


def _where(said: Mapping[str, Any]) -> str:
    """The PoPs at which calls were deleted; a single PoP does not say."""
    there = ", ".join(f"{calls} at {pop}" for pop, calls in said.get("deleted_at", {}).items())
    return f" ({escape(there)})" if there else ""


def _remarks(said: Mapping[str, Any]) -> str:
    turn = said["turn"]
    remarks = ["greeting" if not said["spoken"] and not said["heard"] else "" if said["spoken"] else "typed",
               f"{turn['latency_ms']:.0f} ms" if turn["latency_ms"] is not None and said["spoken"] else "",
               *(word for key, word in (("late", "late"), ("missed", "missed"), ("cut_in", "cut in on"))
                 if turn[key]),
               "interrupted" if said["status"] == "cancelled" else ""]  # fmt: skip
    return ", ".join(filter(None, remarks))


def _parties(row: Mapping[str, Any]) -> str:
    return f"{row['line']} {row['caller']}".strip()


def _ended(row: Mapping[str, Any]) -> str:
    colour = {"": "green", "error": "red", "cut": "red"}.get(row["reason"], "default")
    return f"[{colour}]{row['reason'] or 'goes on'}[/]"


def _lasted(row: Mapping[str, Any]) -> str:
    seconds = (row["ended"] or time.time()) - row["began"]
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix).strftime("%Y-%m-%d %H:%M:%S")


def _ms(name: str, value: float | None) -> str:
    return "" if value is None else f"{name} {value:.0f} ms"


def _money(value: float | None) -> str:
    """An amount with two decimals, and with three digits where it is less than 1, as the pages show it."""
    if value is None:
        return ""
    shown = float(f"{value:.3g}")  # 0.9996 reads 1.00.
    return f"{value:.{2 - math.floor(math.log10(shown))}f}" if LEAST <= shown < 1 else f"{value:.2f}"


def _json(said: Any, left: bool = False) -> int:
    """The answer as JSON; `left`: it is incomplete, though no PoP is missing."""
    print(msgspec.json.format(msgspec.json.encode(said)).decode())
    return 1 if left or said.get("missing") else 0
