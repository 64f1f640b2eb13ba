"""Any client under the client vectors: its adapter as a process, the scripted server, the verdict."""
