"""Encoders: a graph in, one hidden vector per node and member out."""
