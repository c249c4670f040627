"""Whether anything is left for Python's cycle collector, which comes late: the memory of calls would pile up."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """It does not run meanwhile, and what was there is collected."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
