"""cuBLAS, with which CTranslate2 computes on a GPU."""

import ctypes
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

CUBLAS, CUBLAS_PACKAGE = "libcublas.so.12", "nvidia-cublas-cu12"
"""The library, and its package."""


def find_cublas() -> bool:
    """Whether cuBLAS can be opened; CTranslate2 does it by name alone, NVIDIA's wheel puts it where nobody looks."""
    nvidia = find_spec("nvidia")
    for folder in (nvidia.submodule_search_locations or ()) if nvidia else ():
        for library in sorted(Path(folder).glob("*/lib/libcublas*.so.12")):
            with suppress(OSError):  # said below
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    try:
        ctypes.CDLL(CUBLAS)
    except OSError:
        return False
    return True
