"""Any server under the server vectors: the client before it, the engine behind it, its process, the verdict."""
