"""`frontdesk`: the embedded language engine, an intent matcher configured by the agent's file."""
