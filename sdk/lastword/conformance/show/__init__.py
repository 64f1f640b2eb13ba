"""What a run came to, for eyes and for files: progress, table, report, JUnit."""
