"""What a directory's process takes."""

import subprocess
import sys

HEAVY = ("torch", "onnxruntime", "faster_whisper", "av")
FLOOR = """
import sys
import voicepipe.directory.nats_bus, voicepipe.directory.server.run
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""


def test_a_directory_loads_no_engines_library() -> None:
    loaded = subprocess.run([sys.executable, "-c", FLOOR, *HEAVY], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == ""
