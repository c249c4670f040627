"""An engine for the tests of `engines/hosting/child.py`: nothing but the standard library, since its
interpreter may have no more."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

broken: list[bool] = []
"""Whatever is asked fails from now on, but for "wait": its first part still comes."""


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    print("loading")
    sys.stderr.write("a progress bar\r" * 3)
    match settings.get("load"):
        case "lacks":
            raise ImportError("No module named 'TTS'")
        case "fails":
            raise ValueError("the checkpoint\nis empty")
        case "dies":
            os.write(2, b"out of memory\n")
            os._exit(3)
        case "hangs":
            os.write(2, b"waiting for the GPU\n")
            time.sleep(60)
    return {"rate": 16_000, "pid": os.getpid(), "trial": {"do": "count", "to": 1}}, perhaps


def perhaps(head: dict[str, Any], data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    if head["do"] == "break":
        broken.append(True)
        return iter(())
    if broken and head["do"] != "wait":
        raise RuntimeError("CUDA error")
    return answer(head, data)


def answer(head: dict[str, Any], data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Does what `head["do"]` says."""
    match head["do"]:
        case "echo":
            yield head, data
        case "count":
            for number in range(head["to"]):
                yield {"number": number}, b""
        case "wait":
            yield {"began": True}, b""
            while not os.path.exists(head["until"]):
                time.sleep(0.005)
            yield {"over": True}, b""
        case "print":
            print("from Python")
            subprocess.run(["echo", "from a child of its own"], check=True)
            os.write(1, b"\0\1\2 from C")
            yield head, b""
        case "fail":
            raise RuntimeError("it did not work")
        case "exit":
            sys.exit("give up")
        case "die":
            os.write(2, b"segmentation fault\n")
            os._exit(1)
        case "family":
            yield {"child": subprocess.Popen(["sleep", "60"]).pid}, b""
        case "hang":
            time.sleep(60)
