"""Heads, and the net of an encoder and a head."""
