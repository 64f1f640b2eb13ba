"""One module for each file that scripts/generate.py writes."""
