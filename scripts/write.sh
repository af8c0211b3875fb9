#!/bin/sh
# Write anew every page and file that is made from the code, in some seconds. Pictures: scripts/pictures.py.
set -e
cd "$(dirname "$0")/.."
for page in tables configuration metrics spark statements; do
  uv run python -m "scripts.$page"
done
