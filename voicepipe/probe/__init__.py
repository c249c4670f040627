"""`voicepipe probe`: spoken calls at live PoPs, again and again, and what was heard as metrics."""
