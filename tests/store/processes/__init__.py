"""Small programs that use one store at once: `python -m tests.store.processes` runs one."""
