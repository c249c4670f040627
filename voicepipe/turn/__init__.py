"""Decisions of a call, sans-I/O: fed facts, they return actions. No clock, no await, no socket in this package."""
