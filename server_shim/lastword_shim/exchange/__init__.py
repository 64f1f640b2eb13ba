"""One request and its answer: who may end it, and that it ends once."""
