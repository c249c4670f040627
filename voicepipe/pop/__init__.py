"""One point of presence: whom it admits, how it is, how it lives."""
