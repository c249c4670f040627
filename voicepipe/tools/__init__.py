"""The tools of agents: their code, their arguments, and running them.

A tool raises `ToolError` for a message to the model, and yields `Progress` for one to the caller while it runs.
"""

from voicepipe.base.errors import ToolError
from voicepipe.tools.progress import Progress

__all__ = ["Progress", "ToolError"]
