"""Calibrators: from the errors on held-out units to bounds. Numbers in, numbers out."""
