#!/usr/bin/env bash
# Makes the Python client in target/clients/python: generates it from the OpenAPI document, packs it into dist/, installs
# the wheel in venv/ and checks the types of the example with it. Needs python3 (3.11 or newer) with venv.
set -euo pipefail
cd "$(dirname "$0")"
document=$PWD/../../tests/tests/it/snapshots/openapi.json
out=$(mkdir -p ../../target/clients/python && cd ../../target/clients/python && pwd)

tools=$out/tools
if ! cmp --silent requirements.txt "$tools/requirements.txt"; then
  python3 -m venv --clear "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
  cp requirements.txt "$tools/"
fi

rm -rf "$out/package" "$out/dist" "$out/venv" "$out/document.json"
mkdir "$out/package"
cp pyproject.toml README.md ../../LICENSE-* "$out/package/"
python3 document.py "$document" "$out/package/openapi.json" "$out/package/version.txt"
# It says which operations it leaves out, and goes on; README.md names them.
"$tools/bin/openapi-python-client" generate --meta none --config generator.yaml --path "$out/package/openapi.json" \
  --output-path "$out/package/memhost_client" >"$out/generator.log" 2>&1 || { cat "$out/generator.log" >&2; exit 1; }
# It says that the package has types.
touch "$out/package/memhost_client/py.typed"
"$tools/bin/uv" build --quiet --out-dir "$out/dist" "$out/package"

"$tools/bin/uv" venv --quiet "$out/venv"
"$tools/bin/uv" pip install --quiet --python "$out/venv" "$out"/dist/*.whl
"$tools/bin/mypy" --strict --no-error-summary --cache-dir "$out/mypy" --python-executable "$out/venv/bin/python" example.py
# The tests compare it with the document of the host.
cp "$document" "$out/document.json"
ls "$out"/dist/*
