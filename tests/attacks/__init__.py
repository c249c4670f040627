"""What strangers and callers do to a PoP on purpose, each as one module that does one thing.

A module `NAME.py` has `ATTACK`, an `Attack` (see `target.py`). The same function serves two masters: a test aims it at
a PoP of its own and asserts what must not happen; `python -m tests.attacks` places well-behaved calls beside it and
tells what they notice.
"""
