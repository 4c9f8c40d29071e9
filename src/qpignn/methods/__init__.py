"""Methods: a graph in, intervals out. Each file states only what differs."""
