#!/usr/bin/env bash
# Write requirements.lock: every package of every group, for every platform, with hashes and without addresses. And
# deploy/docker/requirements.lock: the same of what the image runs, for its platforms alone; it ships with the program.
#
#   scripts/lock.sh            write them
#   scripts/lock.sh --check    fail if they are of other requirements, or not what resolution makes of their own versions
#
# The resolution is fixed by pyproject.toml alone: its requirements, and the date in [tool.uv] exclude-newer. It is made in
# an empty folder, so that an older uv.lock of this checkout cannot colour it.
set -euo pipefail

root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir "$work/octo-sync"
cp "$root/pyproject.toml" "$root/README.md" "$root/LICENSE" "$work/octo-sync/"
pins() { grep -E '^(# inputs|[a-z0-9])' "$1" | sed 's/ *\\$//'; }
if [[ "${1:-}" == "--check" ]]; then
  # An index may show a release days after the date that it gives it, so the date alone does not fix what is resolved.
  constraints="$(pins "$root/requirements.lock" | sed -n '/^#/!s/.*/"&",/p' | tr -d '\n')"
  awk -v constraints="$constraints" '{ print } /^\[tool\.uv\]$/ { print "constraint-dependencies = [" constraints "]" }' \
    "$root/pyproject.toml" > "$work/octo-sync/pyproject.toml"
fi

inputs() {
  uv run --quiet --no-project --python '>=3.11' python "$root/scripts/lock_inputs.py" "$root/pyproject.toml"
}

# write FILE WHAT OPTION…
write() {
  local file="$1" what="$2"
  shift 2
  mkdir -p "$(dirname "$work/$file")"
  {
    echo "# Written by scripts/lock.sh; do not edit. $what, hashes, no addresses."
    echo "# Install with: uv pip install --require-hashes -r requirements.lock"
    echo "# inputs: sha256:$(inputs)"
    # From inside the folder, so that no other project's or checkout's settings apply.
    (cd "$work/octo-sync" && env -u VIRTUAL_ENV uv export --quiet --no-header --no-annotate --no-emit-project \
      "$@" --format requirements-txt)
  } > "$work/$file"
  if grep -nE '://|^-|@ ' "$work/$file"; then
    echo "lock: an address or an option would be written; look at [tool.uv] and at your own settings" >&2
    exit 1
  fi
}

write requirements.lock "All groups and extras, all platforms" --all-groups --no-group docs --all-extras
image=deploy/docker/requirements.lock
write "$image" "What the image of octo-sync runs, Linux" --no-default-groups --extra postgres --extra xlsx
uv run --quiet --no-project --python '>=3.11' python "$root/scripts/lock_image.py" "$work/octo-sync/uv.lock" \
  < "$work/$image" > "$work/fitting"
mv "$work/fitting" "$work/$image"

for file in requirements.lock "$image"; do
  if [[ "${1:-}" == "--check" ]]; then
    if ! diff -u <(pins "$root/$file") <(pins "$work/$file"); then
      echo "lock: $file is not current; run scripts/lock.sh" >&2
      exit 1
    fi
  else
    cp "$work/$file" "$root/$file"
  fi
done
