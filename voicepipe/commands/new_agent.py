"""`voicepipe new`: a folder with an agent to begin with."""

import re
import sys
from pathlib import Path
from string import Template

from voicepipe.base.errors import ConfigError
from voicepipe.base.ranges import IN_WORDS, NAME

STARTER = Path(__file__).parent.parent / "starter"


def write(folder: Path) -> int:
    """Write the folder, and say what comes next. Raises ConfigError: the folder exists, or its name is no agent's."""
    name = folder.resolve().name
    if not re.fullmatch(NAME, name):
        raise ConfigError(f"{name!r} cannot be an agent's name; allowed: {IN_WORDS[NAME]}")
    blanks = {"name": name, "folder": folder, "voicepipe": _command()}
    try:
        folder.mkdir(parents=True)
        for source in sorted(STARTER.iterdir()):
            if source.is_file():
                text = source.read_text(encoding="utf-8")
                (folder / source.name).write_text(Template(text).safe_substitute(blanks), "utf-8")
    except FileExistsError:
        raise ConfigError(f"{folder} is there already; choose another name") from None
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written: {error.strerror}") from None
    print(f"{folder}/ is an agent: agent.toml, tools.py and README.md. Next:")
    print(f"  python3 {folder}/tools.py      # in another terminal: answers the webhook")
    print(f"  {blanks['voicepipe']} demo --agent {folder}")
    return 0


def _command() -> str:
    """The command as it was called: it need not be on the path."""
    return sys.argv[0] if Path(sys.argv[0]).name == "voicepipe" else f"{sys.executable} -m voicepipe"
