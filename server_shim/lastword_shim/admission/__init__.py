"""Who gets in: how many may be at work or wait, and why one is refused."""
