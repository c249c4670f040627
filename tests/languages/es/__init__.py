"""Tests of what is known of Spanish."""
