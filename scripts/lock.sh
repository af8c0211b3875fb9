#!/usr/bin/env bash
# Write requirements.lock: every package of every group, for every platform, with hashes and without addresses.
#
#   scripts/lock.sh            write it
#   scripts/lock.sh --check    fail if it is not what would be written
#
# The resolution is fixed by pyproject.toml alone: its requirements, and the date in [tool.uv] exclude-newer. It is made in
# an empty folder, so that an older uv.lock of this checkout cannot colour it.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/octo-sync"
cp "$root/pyproject.toml" "$root/README.md" "$root/LICENSE" "$work/octo-sync/"

inputs() {
  uv run --quiet --no-project --python '>=3.11' python "$root/scripts/lock_inputs.py" "$root/pyproject.toml"
}

{
  echo "# Written by scripts/lock.sh; do not edit. All groups and extras, all platforms, hashes, no addresses."
  echo "# Install with: uv pip install --require-hashes -r requirements.lock"
  echo "# inputs: sha256:$(inputs)"
  # From inside the folder, so that no other project's or checkout's settings apply.
  (cd "$work/octo-sync" && env -u VIRTUAL_ENV uv export --quiet --no-header --no-annotate --no-emit-project \
    --all-groups --all-extras --format requirements-txt)
} > "$work/requirements.lock"

if grep -nE '://|^-|@ ' "$work/requirements.lock"; then
  echo "lock: an address or an option would be written; look at [tool.uv] and at your own settings" >&2
  exit 1
fi
if [[ "${1:-}" == "--check" ]]; then
  diff -u "$root/requirements.lock" "$work/requirements.lock" || {
    echo "lock: requirements.lock is not current; run scripts/lock.sh" >&2
    exit 1
  }
else
  cp "$work/requirements.lock" "$root/requirements.lock"
fi
