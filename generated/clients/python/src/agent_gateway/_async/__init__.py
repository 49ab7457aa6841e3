# Copied by "npm run generate" from scripts/generate/runtime/python/_async/__init__.py; do not edit.
"""The async client, without what both share."""
