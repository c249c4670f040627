"""Language models, and the embedded engine that needs none."""
