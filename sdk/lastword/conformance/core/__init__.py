"""The pure core under the vectors that need no network: bytes to events, failures to decisions. Played by tests only."""
