"""The operators' HTTP endpoints: records, the dashboard, metrics, the built-in pages."""
