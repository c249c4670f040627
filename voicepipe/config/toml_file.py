"""TOML files into structs, with errors for the person who wrote the file: which key, what is wrong, what is allowed."""

import copy
import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterable
from functools import cache
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from voicepipe.base.errors import ConfigError
from voicepipe.base.ranges import IN_WORDS, VARIABLE

T = TypeVar("T")
Key = str | int
"""One step into a document: a table's key or a list's index."""
KeyPath = tuple[Key, ...]

DEEPEST = 30
"""Levels of tables and lists inside one another. No key of ours has more than six, and what reads them does so by
recursion."""
TOO_DEEP = f"has tables or lists more than {DEEPEST} deep inside one another; is a bracket missing?"
WIDEST = 1024
"""Bits of a whole number. Python refuses to print one with thousands, so a message could not show it."""
TOO_WIDE = "has a whole number of hundreds of digits; are its quotes missing?"
MOST_PROBLEMS = 50
"""Problems of one file that are reported. Each takes another look at all of it, and a file with more is of another
kind."""

HELPS = {
    "Invalid value (at end": "end the list with ]",
    "Invalid value": 'put text between straight quotes, as name = "clinic"',
    "Cannot overwrite a value": "it stands there twice; leave one of the two out",
    "Cannot declare": "this table stands there twice; put its keys together, or write [[tools]] for each of several",
    "Expected '=' after a key": 'write KEY = VALUE, as name = "clinic"',
    "Illegal character '\\n'": "end the text with a quote; longer texts stand between three quotes",
    "Unterminated string": "end the text with the quotes that it begins with",
    "Expected newline": 'write one value: thousands as 3_600_000, fractions as 0.5, quotes within a text as \\"',
    "Unescaped": "write two backslashes for one, or put the text between single quotes",
    "Unclosed array": "write a comma between the entries, and ] at the end",
}
"""Advice, by the beginning of tomllib's message."""
YES_OR_NO = ("true", "false", "yes", "no", "on", "off")
UNITS = {"_ms": "milliseconds", "_s": "seconds", "_bytes": "bytes"}
"""The unit of a number, by the end of its key."""

_TEXT = re.compile(
    r"""(?sx) \# [^\n]* | \"{3} (?: [^"\\]++ | \\. | "(?!"") )*+ \\? (?: \"{3,5} | \Z ) | '{3} .*? (?: '{3,5} | \Z )
    | " (?: \\. | [^"\\\n] )* "? | ' [^'\n]* '?"""
)
"""A comment of TOML, or a text, which may be part of a key. One that does not end is followed by an error anyway."""
_DEEP_KEY = re.compile(rf"(?<![\w.-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{DEEPEST}}}")
"""A dotted key that alone goes deeper than `DEEPEST`."""


def read(path: Path, shape: type[T]) -> T:
    """The file at `path` as a `shape`. Raises ConfigError with one line for each problem."""
    return convert(tables(path), shape, path)


def tables(path: Path) -> dict[str, Any]:
    """The file's plain content, not checked. Raises ConfigError if it cannot be read or is no TOML."""
    return parsed(text_of(path), path)


def text_of(path: Path) -> str:
    """The file's text. Raises ConfigError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")  # Some editors begin a file with a mark.
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}; give the path of a TOML file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: is not UTF-8 text; save it as UTF-8") from error


def parsed(text: str, path: object) -> dict[str, Any]:
    """The tables in a text; `path` names it in errors. Raises ConfigError."""
    # tomllib takes time and memory by the square of its parts: 24 KB took a second, and agents are read beside calls.
    if _DEEP_KEY.search(_TEXT.sub("x", text)):
        raise ConfigError(f"{path}: {TOO_DEEP}")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: is not TOML: {_with_help(str(error), text)}") from error
    except RecursionError:
        raise ConfigError(f"{path}: {TOO_DEEP}") from None
    except ValueError:  # What int() says of thousands of digits.
        raise ConfigError(f"{path}: {TOO_WIDE}") from None
    if problem := _excess(found):
        raise ConfigError(f"{path}: {problem}")
    return found


def _with_help(said: str, text: str) -> str:
    """tomllib's message, with the key at that position and advice."""
    lines = text.split("\n")
    if found := re.search(r"at line (\d+), column (\d+)", said):
        line = lines[int(found[1]) - 1]
        rest = line[int(found[2]) - 1 :]
    else:  # A text that does not end, or a list: it begins where the last one does.
        signs = ('"""', "'''") if said.startswith("Unterminated") else ("=",)
        line = next((line for line in reversed(lines) if any(sign in line for sign in signs)), "")
        rest = line.partition("=")[2]
    key = re.match(r"\s*(\[*[\w\"'][\w.\"' -]*\]*)", line)
    helps = _helps(said, rest)
    return said + (f", at {key[1][:60].strip()}" if key else "") + (f"; {helps}" if helps else "")


def _helps(said: str, rest: str) -> str:
    """Advice for a line that goes on like this; empty: none."""
    if said.startswith("Invalid value"):
        word = re.split(r"[\s#\]}]|(?<=\w),", rest.lstrip(), maxsplit=1)[0]
        if not word:
            return 'nothing stands behind =; write a value, as name = "clinic", or leave the key out'
        if word.lower() in YES_OR_NO:
            return "write true or false"
        if fraction := re.fullmatch(r"([+-]?)(\.\d+)", word):
            return f"write {fraction[1]}0{fraction[2]}"
    return next((helps for begins, helps in HELPS.items() if said.startswith(begins)), "")


def _excess(data: object) -> str:
    """What is too deep or too wide; empty: nothing. Goes level by level: recursion is what it prevents."""
    level: list[object] = [data]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return ""
        if any(isinstance(value, int) and value.bit_length() > WIDEST for value in level):
            return TOO_WIDE
    return TOO_DEEP


def _inside(data: object) -> Iterable[object]:
    return data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()


def convert(data: dict[str, Any], shape: type[T], source: object) -> T:
    """`data` as a `shape`. Raises ConfigError with one line for each problem, `MOST_PROBLEMS` of them where they can be
    separated.

    msgspec stops at the first problem, so each one found is taken out and the rest is tried again."""
    rest, problems = copy.deepcopy(data), list[str]()
    taken = set[KeyPath]()
    while len(problems) < MOST_PROBLEMS:
        try:
            value = msgspec.convert(rest, shape)
        except msgspec.ValidationError as error:
            problem, key_path = _explain(str(error), rest, shape, taken)
            if problem:
                problems.append(f"{source}: {problem}")
            taken.add(_in_the_file(key_path, taken))
            if _removed(rest, key_path):
                continue
        break
    else:
        problems.append(f"{source}: there may be more; the first {MOST_PROBLEMS} problems are told")
    if problems:
        raise ConfigError("\n".join(problems))
    return value


def dotted(keys: Iterable[Key]) -> str:
    """`("tenants", 0, "name")` as readers know it: `tenants[0].name`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")


def _in_the_file(key_path: KeyPath, taken: Collection[KeyPath]) -> KeyPath:
    """The path of a value in the file, before other values were taken out: what comes after them in a list has moved
    up."""
    found: KeyPath = ()
    for key in key_path:
        if isinstance(key, int):
            left = (index for index in count() if (*found, index) not in taken)
            key = next(islice(left, key, None))
        found = (*found, key)
    return found


def _explain(message: str, data: dict[str, Any], shape: type[Any], taken: Collection[KeyPath]) -> tuple[str, KeyPath]:
    """A sentence for msgspec's message, and the path in `data` to take out before trying again. The sentence is empty
    where a key is missing only since its wrong value was taken out."""
    what, _, where = message.partition(" - at `$")
    key_path = _steps(where, data)
    in_file = _in_the_file(key_path, taken)
    kind, value = _at(_kind(shape), data, key_path)  # type: ignore[arg-type]  # mypy: a type is not Hashable
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        return _unknown(unknown[1], in_file, kind, _kind(shape)), (*key_path, unknown[1])  # type: ignore[arg-type]
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        key = (*in_file, missing[1])
        return "" if key in taken else f"{dotted(key)}: is missing; every {_noun(in_file)} needs it", key_path
    if what.startswith(("Expected", "Invalid")):
        return f"{dotted(in_file)}: {_not_allowed(in_file, value, kind)}", key_path
    name, colon, why = what.partition(": ")  # A table's own check may say which of its keys it is.
    if colon and re.fullmatch(r"[\w.]+", name):
        key = (*in_file, *name.split("."))
        return "" if key in taken and why.startswith("is missing") else f"{dotted(key)}: {why}", key_path
    return f"{dotted(in_file)}: {what}", key_path


def _steps(where: str, data: Any) -> KeyPath:
    """The steps of a path of msgspec's. For a table of texts it does not say which of them is none."""
    key_path: KeyPath = ()
    for key, index in re.findall(r"\.(\w[\w-]*)|\[(\d+|\.{3})\]", where):
        step: Key = int(index) if index.isdigit() else key
        if index == "...":
            step = next(key for key, value in data.items() if not isinstance(value, str))
        key_path, data = (*key_path, step), data[step]
    return key_path


def _not_allowed(key_path: KeyPath, value: Any, kind: inspect.Type) -> str:
    """The value, the values that are allowed, and what the writer may have meant."""
    several = isinstance(kind, inspect.VarTupleType) and isinstance(kind.item_type, inspect.StructType)
    if several and isinstance(value, dict):
        return f"there may be several of them: write [[{dotted(key_path)}]] in place of [{dotted(key_path)}]"
    what = f"{_what_is_there(key_path, value, kind)}; allowed: {allowed(kind)}"
    number = isinstance(kind, inspect.IntType | inspect.FloatType)
    if number and (unit := next((unit for end, unit in UNITS.items() if str(key_path[-1]).endswith(end)), "")):
        what += f", in {unit}"
    is_bare = number or isinstance(kind, inspect.BoolType)
    return what + ("; leave the quotes out" if isinstance(value, str) and is_bare else "")


def _what_is_there(key_path: KeyPath, value: Any, kind: inspect.Type) -> str:
    """The wrong value, unless it may be a secret, or hold one."""
    if value and isinstance(kind, inspect.StrType) and kind.pattern == VARIABLE:
        return "holds something else than a name"
    if "headers" in key_path:
        return "holds something else than text"
    if isinstance(value, dict):
        return "cannot be a table"
    if isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        return "cannot be a list of tables or lists"
    shown = json.dumps(value, default=str, ensure_ascii=False)
    return f"cannot be {shown if len(shown) < 60 else shown[:57] + '...'}"


@cache
def _kind(shape: type[Any]) -> inspect.Type:
    """msgspec's description of a shape. It takes 5 ms to make, and is needed for each problem of a file."""
    return inspect.type_info(shape)


def _unknown(name: str, key_path: KeyPath, kind: inspect.Type, root: inspect.Type) -> str:
    known = [field.encode_name for field in kind.fields] if isinstance(kind, inspect.StructType) else []
    close = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}? " if close else ""
    hint += _elsewhere(name, root) if key_path and not close else ""
    if "args" in known:
        hint += f"the engine's own arguments stand in {dotted((*key_path, 'args'))}; "
    return f"{dotted((*key_path, name))}: there is no such key; {hint}allowed: {', '.join(known)}"


def _elsewhere(name: str, root: inspect.Type) -> str:
    """Where else in the file there is such a key."""
    fields = root.fields if isinstance(root, inspect.StructType) else ()
    if any(field.encode_name == name and not isinstance(field.type, inspect.StructType) for field in fields):
        return f"put {name} above the file's first [table]; "
    tables = [f"[{field.encode_name}]" for field in fields if isinstance(field.type, inspect.StructType)
              and any(inner.encode_name == name for inner in field.type.fields)]  # fmt: skip
    return f"there is one in {', '.join(tables)}; " if tables else ""


def _noun(key_path: KeyPath) -> str:
    return "file of this kind" if not key_path else f"entry of {dotted(key_path[:-1]) or dotted(key_path)}"


def _at(kind: inspect.Type, value: Any, key_path: KeyPath) -> tuple[inspect.Type, Any]:
    """Follow a path from a document and its type to the type and the value at its end."""
    for key in key_path:
        kind = _present(kind)
        if isinstance(kind, inspect.StructType):
            kind = next((field.type for field in kind.fields if field.encode_name == key), inspect.AnyType())
        elif isinstance(kind, inspect.VarTupleType):
            kind = kind.item_type
        elif isinstance(kind, inspect.DictType):
            kind = kind.value_type
        value = value[key]
    return _present(kind), value


def _present(kind: inspect.Type) -> inspect.Type:
    """`X` of `X | None`: a TOML file has no null."""
    if isinstance(kind, inspect.UnionType):
        kinds = [part for part in kind.types if not isinstance(part, inspect.NoneType)]
        return kinds[0] if len(kinds) == 1 else kind
    return kind


def _removed(data: dict[str, Any], key_path: KeyPath) -> bool:
    if not key_path:
        return False
    node: Any = data
    for key in key_path[:-1]:
        node = node[key]
    del node[key_path[-1]]
    return True


def allowed(kind: inspect.Type) -> str:
    """The values that are allowed where `kind` is expected, in words."""
    match kind:
        case inspect.IntType():
            return "a whole number" + _bounds(kind)
        case inspect.FloatType():
            return "a number" + _bounds(kind)
        case inspect.LiteralType():
            return ", ".join(json.dumps(value) for value in kind.values)
        case inspect.StrType():
            return IN_WORDS.get(kind.pattern, f"text matching {kind.pattern}") if kind.pattern else "text"
        case inspect.BoolType():
            return "true, false"
        case inspect.VarTupleType():
            least = f", at least {kind.min_length}" if kind.min_length else ""
            return f"a list of {allowed(kind.item_type)}{least}, in brackets [ ]"
        case inspect.DictType():
            return f"a table with {allowed(kind.value_type)} under every key"
        case inspect.StructType():
            return f"a table with the keys {', '.join(field.encode_name for field in kind.fields)}"
        case inspect.UnionType():
            return " or ".join(allowed(part) for part in kind.types)
    return "any value"


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    words = {"at least": kind.ge, "above": kind.gt, "at most": kind.le, "below": kind.lt}
    return "".join(f", {word} {bound:.12g}" for word, bound in words.items() if bound is not None)
