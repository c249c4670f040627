"""What was said, and how text is spoken: events, history, prompts, phrases. No clock, no await, no socket."""
