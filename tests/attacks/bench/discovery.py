"""Every attack that there is: the modules beside this package that have one."""

import importlib
import pkgutil

from tests import attacks
from tests.attacks.target import Attack


def found() -> dict[str, Attack]:
    """By name, in order of their names. Raises ValueError where two have the same."""
    modules = (module.name for module in pkgutil.iter_modules(attacks.__path__))
    names = [name for name in modules if not name.startswith(("_", "test_"))]
    by_name: dict[str, Attack] = {}
    for name in sorted(names):
        attack = getattr(importlib.import_module(f"{attacks.__name__}.{name}"), "ATTACK", None)
        if not isinstance(attack, Attack):
            continue
        if attack.name in by_name:
            raise ValueError(f"two attacks are called {attack.name!r}; give each a name of its own")
        by_name[attack.name] = attack
    return by_name
