"""``python -m lastword.demo``: what lastword is about, really run before the reader's eyes."""
