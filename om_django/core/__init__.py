"""The functional core: plain Python, no Django, no I/O and no clock of its own."""
