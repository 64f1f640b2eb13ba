"""What lastword costs: measured, and never asserted."""


class BenchError(Exception):
    """Something that is measured failed or lost data: its time would mean nothing."""
