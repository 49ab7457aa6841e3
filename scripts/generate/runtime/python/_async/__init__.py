"""The async client, without what both share."""
