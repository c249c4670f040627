"""How engines live: threads, child processes, GPUs, failures."""
