"""The soak: many streams at once, a third of them dropped, round after round; nothing may be left of them but records."""
