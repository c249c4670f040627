"""Which point of presence (PoP) a call goes to: what PoPs report, what is known of them, and the choice."""
