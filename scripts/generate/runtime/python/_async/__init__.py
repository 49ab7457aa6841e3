"""The modules of the async client that have a sync counterpart."""
