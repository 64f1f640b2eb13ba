"""What became of each request: its states and times, its record, and the metrics."""
