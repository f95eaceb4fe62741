#!/usr/bin/env bash
# Makes target/book from host/docs, with a search, and checks its links without the network. Needs Python; it installs
# mdbook in target/tools if there is none of this version, which takes some minutes.
set -euo pipefail
cd "$(dirname "$0")"
target=$(mkdir -p ../../../target && cd ../../../target && pwd)
version=0.5.4

mdbook=$target/tools/bin/mdbook
if [ "$("$mdbook" --version 2>/dev/null)" != "mdbook v$version" ]; then
  # Without the server, which nobody needs here.
  cargo install --quiet --locked --debug --no-default-features --features search --root "$target/tools" "mdbook@$version"
fi

rm -rf "$target/book" "$target/book-source"
mkdir -p "$target/book-source"
cp book.toml "$target/book-source/"
python3 pages.py "$target/book-source/src"
"$mdbook" build --dest-dir "$target/book" "$target/book-source"
ls "$target"/book/searchindex* >/dev/null
python3 links.py "$target/book"
echo "$target/book/index.html"
