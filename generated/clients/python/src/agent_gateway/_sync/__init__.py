# Copied by "npm run generate" from scripts/generate/runtime/python/_sync/__init__.py; do not edit.
"""The sync client, without what both share."""
