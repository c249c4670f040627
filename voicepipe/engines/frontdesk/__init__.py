"""`frontdesk`: the embedded language engine, an intent matcher configured by the agent's file."""

from voicepipe.engines.frontdesk.frontdesk_llm import FrontdeskLlm

__all__ = ["FrontdeskLlm"]
