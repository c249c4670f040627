"""The Python functions of agents' tools: `module:function`, from a file beside the agent's own, or an installed one.

A file's code is read again when any Python file beside it has changed. What is loaded is the process's, as Python's own
modules are: a PoP has one folder of agents.
"""

import importlib
import importlib.util
import inspect
import sys
import threading
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from voicepipe.base.errors import ConfigError

Function = Callable[..., Any]
Version = tuple[tuple[str, int, int], ...]
"""Name, modification time in ns and size of files of a folder."""

_known: dict[str, Function] = {}
"""Loaded functions, by the name that `placed` gives."""
_files: dict[Path, tuple[Version, ModuleType]] = {}
"""Files of tools as they were last read, with the version of their folder."""
_reading = threading.Lock()


def placed(function: str, folder: Path) -> str:
    """`tools:book`, or `tools.py:book`, as `/path/tools.py:book` where that file lies in `folder`; others unchanged."""
    module, colon, name = function.rpartition(":")
    file = folder / (module if module.endswith(".py") else f"{module.replace('.', '/')}.py")
    try:
        return f"{file.resolve()}:{name}" if colon and module and file.is_file() else function
    except OSError:  # A name that no file can have.
        return function


def known(function: str) -> Function | None:
    """The function, as it was last read; None: it was not loaded."""
    return _known.get(function)


def load(function: str) -> Function:
    """Import the function, or read its file again where that has changed. Not for the event loop. Raises
    ConfigError."""
    module, colon, name = function.rpartition(":")
    if not (colon and module and name):
        raise ConfigError(f'"{function}" names no function; give "module:function", such as "tools:book"')
    try:
        found = _from_file(Path(module)) if module.endswith(".py") else importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            raise ConfigError(
                f"there is no module {module}; put {module.split('.')[0]}.py beside the agent's file, or install it"
            ) from None
        raise ConfigError(f"{module} cannot be imported: {_described(error, module)}") from error
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{module} cannot be imported: {_described(error, module)}") from error
    made = getattr(found, name, None)
    if not callable(made):
        has = ", ".join(_functions(found)) or "none"
        raise ConfigError(f"{module} has no function {name}; its functions: {has}")
    _known[function] = made
    return made  # type: ignore[no-any-return]


def version(folder: Path, files: str = "*.py") -> Version:
    """The files of the folder with their times and sizes: it changes when any of them does."""
    found = []
    for file in sorted(folder.glob(files)):
        try:
            stat = file.stat()
        except OSError:  # deleted, or replaced by an editor, this very moment
            continue
        found.append((file.name, stat.st_mtime_ns, stat.st_size))
    return tuple(found)


def mismatch(function: Function, parameters: Mapping[str, Any]) -> str:
    """Why it cannot be called with arguments of this JSON Schema; empty: it can. Of a schema without properties
    nothing is known."""
    properties = parameters.get("properties")
    if not isinstance(properties, dict):
        return ""
    try:
        its = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # Some that are written in C do not say.
        return ""
    takes_all = any(each.kind is each.VAR_KEYWORD for each in its)
    by_name = {each.name: each for each in its if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    name = getattr(function, "__name__", "it")
    if not takes_all and (unknown := [each for each in properties if each not in by_name]):
        takes = ", ".join(by_name) or "nothing"
        return f"{name} takes no {' and no '.join(unknown)}, which the tool's parameters have; it takes {takes}"
    needs = [
        each.name for each in by_name.values() if each.default is each.empty and each.name not in (*properties, "call")
    ]
    return f"{name} needs {' and '.join(needs)}, of which the tool's parameters know nothing" if needs else ""


def taken(function: Function, given: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the arguments that the function takes; all of them if it does not say."""
    try:
        its = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return dict(given)
    takes_all = any(each.kind is each.VAR_KEYWORD for each in its.values())
    return {name: value for name, value in given.items() if takes_all or name in its}


def needs_more(function: Function, given: Iterable[str]) -> str:
    """Why it cannot be called with those of the arguments `given` that it takes; empty: it can."""
    names = tuple(given)
    try:
        its = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ""
    variable = inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL
    needs = [each.name for each in its if each.default is each.empty and each.kind not in variable
             and (each.name not in names or each.kind is each.POSITIONAL_ONLY)]  # fmt: skip
    name = getattr(function, "__name__", "it")
    return f"{name} needs {' and '.join(needs)}, which it does not get; it can take {', '.join(names)}" if needs else ""


def _from_file(file: Path) -> ModuleType:
    with _reading:
        current, seen = _files.get(file), version(file.parent)
        if current and current[0] == seen:
            return current[1]
        folder = str(file.parent)
        if folder not in sys.path:
            sys.path.append(folder)  # for what it imports from files beside it
        _forget(folder)
        name = f"voicepipe_tools.{zlib.crc32(folder.encode())}.{file.stem}"
        spec = importlib.util.spec_from_file_location(name, file)
        if spec is None or spec.loader is None:
            raise ImportError(f"{file} is no Python file")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for it
        spec.loader.exec_module(module)
        _files[file] = seen, module
        return module


def _forget(folder: str) -> None:
    """Modules of this folder are imported anew by whoever needs them next."""
    importlib.invalidate_caches()
    for name, module in list(sys.modules.items()):
        if str(Path(getattr(module, "__file__", None) or "/").parent) == folder:
            del sys.modules[name]


def _functions(module: ModuleType) -> Iterator[str]:
    mine = module.__name__
    return (name for name, made in vars(module).items()
            if inspect.isfunction(made) and made.__module__ == mine and not name.startswith("_"))  # fmt: skip


def _described(error: BaseException, module: str) -> str:
    """The error, and the line of the file in which it was raised."""
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError):
        return what
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == module]
    return f"{what} (line {lines[-1]})" if lines else what
