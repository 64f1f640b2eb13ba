"""The inside of ``lastword.testing``: what a scripted server is to send, how that is played on a socket, what was received."""
