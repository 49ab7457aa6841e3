# Copied by "npm run generate" from scripts/generate/runtime/python/_async/__init__.py; do not edit.
"""The modules of the async client that have a sync counterpart."""
