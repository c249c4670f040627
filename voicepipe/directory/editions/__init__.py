"""One configuration for a fleet: agents, routes and tenants, numbered as they are pushed."""
