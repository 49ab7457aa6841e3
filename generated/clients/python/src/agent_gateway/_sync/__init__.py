# Copied by "npm run generate" from scripts/generate/runtime/python/_sync/__init__.py; do not edit.
"""The modules of the sync client that have an async counterpart."""
