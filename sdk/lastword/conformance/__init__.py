"""The conformance suite's playing parts: scripted servers, the contract's vectors, and what they are judged by."""
