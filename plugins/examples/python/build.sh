#!/usr/bin/env bash
# Builds target/examples/notes-python.wasm. Needs python3 (3.10 or newer) with venv.
set -euo pipefail
cd "$(dirname "$0")"
target=$(mkdir -p ../../../target/examples && cd ../../../target && pwd)

tools=$target/venv-componentize
if ! "$tools/bin/pip" freeze 2>/dev/null | grep -qxf requirements.txt; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
fi
# The interpreter starts at build time: the component contains a snapshot of it with `notes` imported.
VIRTUAL_ENV=$tools "$tools/bin/componentize-py" --quiet -d ../../../wit -w memory-provider \
  componentize notes -o "$target/examples/notes-python.wasm"
