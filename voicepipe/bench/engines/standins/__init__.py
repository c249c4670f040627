"""Engines of true shape in torch alone, for what is not installed. torch is imported in this package only."""
