"""The tools of agents: their code, their arguments, and running them.

A tool raises `ToolError` for a message to the model.
"""

from voicepipe.base.errors import ToolError

__all__ = ["ToolError"]
