"""The tools of agents: their code, their arguments, and running them."""
