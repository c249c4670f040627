"""The tool by which a model hangs up."""

from voicepipe.agent import ToolSpec

END_CALL = "end_call"
END_CALL_TOOL = ToolSpec(
    END_CALL,
    "Hang up. Only once the caller has made clear that they want nothing else; say goodbye in the same reply.",
    {"type": "object", "properties": {}},
)
"""What is offered to the model."""
