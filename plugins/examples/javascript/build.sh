#!/usr/bin/env bash
# Builds target/examples/notes-javascript.wasm and target/examples/notes-javascript-fetch.wasm. Needs node (20 or newer) and npm.
set -euo pipefail
cd "$(dirname "$0")"
target=$(mkdir -p ../../../target/examples && cd ../../../target && pwd)

if [ ! -e node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  npm ci --silent --no-fund --no-audit
  touch node_modules/.package-lock.json
fi
# The engine starts at build time: the component contains a snapshot of it with the source evaluated.
node build.mjs notes.js "$target/examples/notes-javascript.wasm"
node build.mjs fetch.js "$target/examples/notes-javascript-fetch.wasm"
