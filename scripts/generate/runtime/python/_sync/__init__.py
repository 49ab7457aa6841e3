"""The sync client, without what both share."""
