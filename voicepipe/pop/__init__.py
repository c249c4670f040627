"""One point of presence: admission, state, life."""
