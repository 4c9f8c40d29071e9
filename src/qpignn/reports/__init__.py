"""Report pages, tables and figures of results; nothing here trains a model."""
