"""The imperative shell: loads rows, asks the core, applies the answer in one transaction."""
