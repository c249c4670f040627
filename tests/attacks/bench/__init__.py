"""Places well-behaved calls with and without an attack beside them, and tells what they notice of it."""
