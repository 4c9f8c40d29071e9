"""Graphs in, and everything one does to a graph before a method sees it."""
