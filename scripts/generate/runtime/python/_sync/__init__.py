"""The modules of the sync client that have an async counterpart."""
