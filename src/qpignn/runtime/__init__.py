"""Runtime utilities: memory, processes, progress, random streams, signals, torch's state."""
