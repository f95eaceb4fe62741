#!/usr/bin/env bash
# Makes the TypeScript client in target/clients/typescript: generates its types from the OpenAPI document, packs it into
# dist/, installs the archive in the project example/ and compiles the example there. Needs node (20 or newer) and npm.
set -euo pipefail
cd "$(dirname "$0")"
document=$PWD/../../tests/tests/it/snapshots/openapi.json
out=$(mkdir -p ../../target/clients/typescript && cd ../../target/clients/typescript && pwd)

rm -rf "$out/dist" "$out/example" "$out/document.json" "$out/package/src" "$out/package/dist"
mkdir -p "$out/package" "$out/dist" "$out/example"
cp -R src package.json package-lock.json tsconfig.json .npmrc README.md ../../LICENSE-* "$out/package/"
cp "$document" "$out/package/document.json"
cd "$out/package"
npm ci --silent --no-fund --no-audit
# The version is the document's.
npm pkg set "version=$(node -p 'require("./document.json").info.version')"
npm run --silent build >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }
npm pack --silent --pack-destination "$out/dist" >/dev/null
cd - >/dev/null

cp example.ts "$out/example/"
cd "$out/example"
echo '{"private": true, "type": "module"}' >package.json
npm install --silent --no-fund --no-audit --no-package-lock "$out"/dist/*.tgz
"$out/package/node_modules/.bin/tsc" --strict --noUncheckedIndexedAccess --target ES2022 --module NodeNext \
  --types node --typeRoots "$out/package/node_modules/@types" example.ts
# The tests compare it with the document of the host.
cp "$document" "$out/document.json"
ls "$out"/dist/*
