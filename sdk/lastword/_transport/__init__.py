"""Where bytes meet the network: the only modules that know an HTTP library or a socket."""
