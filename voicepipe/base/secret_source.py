"""Secrets are in no configuration: a pair of keys names the environment variable (`key_env`) or the file (`key_file`)
that holds one."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from voicepipe.base.environment import CREDENTIALS, variable

ENV, FILE = "_env", "_file"
"""How the two keys of a pair end."""
OUTSIDE = (
    f"since systemd alone sets {CREDENTIALS}, for a unit with LoadCredential= (elsewhere set it to a folder with these "
    "files)"
)
"""Why there is no file of the service's credentials, with advice."""


class SecretMissing(ValueError):
    """The variable or file does not hold a secret; the text says why."""


class SecretSource(msgspec.Struct, frozen=True):
    """Where a secret is: in an environment variable, in a file, or nowhere, since none is needed."""

    variable: str = ""
    file: str = ""

    @classmethod
    def of_text(cls, text: str) -> "SecretSource":
        """The source that `text` of another one says. A variable's name has no slash, and an absolute path has one."""
        return cls(file=text) if "/" in text else cls(variable=text)

    @property
    def text(self) -> str:
        """The variable's name, or the file's absolute path."""
        return self.variable or self.file

    def __bool__(self) -> bool:
        return bool(self.text)

    def __str__(self) -> str:
        return self.file or f"the environment variable {self.variable}"

    def key_at(self, name: str) -> str:
        """The key of the pair that names this source, as "tenants[0].key_file"."""
        return name + (FILE if self.file else ENV)

    def advice(self, what: str) -> str:
        """What to do where it does not hold `what`."""
        return f"write {what} into it" if self.file else f"set it to {what}"

    def read(self) -> str:
        """The secret as it is now, without white space around it; empty: none is needed. Blocking where it is in a
        file. Raises SecretMissing."""
        if self.file:
            return _of_file(self.file)
        value = variable(self.variable) if self.variable else ""
        if self.variable and not value:
            raise SecretMissing(f"{self} is not set here, or empty")
        return value


class SecretPair:
    """A pair of keys of a table, `NAME_env` and `NAME_file`, as one attribute `NAME`: the `SecretSource` of the
    table."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, table: msgspec.Struct, owner: type | None = None) -> SecretSource:
        return SecretSource(getattr(table, self._name + ENV), getattr(table, self._name + FILE))


def pairs(table: msgspec.Struct) -> Iterator[str]:
    """The names of a table's pairs."""
    for kind in type(table).__mro__:
        yield from (name for name, value in vars(kind).items() if isinstance(value, SecretPair))


def check_pairs(table: msgspec.Struct, *needed: str) -> None:
    """Raises ValueError: a pair names two sources, or one that is needed names none."""
    for name in pairs(table):
        source: SecretSource = getattr(table, name)
        if source.variable and source.file:
            raise ValueError(f"{name}{FILE}: {name}{ENV} names a variable already; leave one of the two out")
        if name in needed and not source:
            raise ValueError(f"{name}{ENV}: is missing; name the variable that holds it, or its file as {name}{FILE}")


def _of_file(path: str) -> str:
    """The one line of text in a file. Raises SecretMissing."""
    if path.startswith(f"${CREDENTIALS}/"):
        raise SecretMissing(f"there is no {path}, {OUTSIDE}")
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise SecretMissing(f"there is no {path}") from None
    except OSError as error:
        raise SecretMissing(f"{path} cannot be read ({error.strerror})") from None
    except ValueError:  # UnicodeDecodeError
        raise SecretMissing(f"{path} holds no text") from None
    if len(text.splitlines()) != 1:
        raise SecretMissing(f"{path} holds several lines, and a secret is one" if text else f"{path} is empty")
    return text
