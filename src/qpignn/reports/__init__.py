"""Tables and figures made from results; nothing here trains."""
