"""Where bytes meet the network: the only modules that know a socket, and what an HTTP library keeps inside."""
