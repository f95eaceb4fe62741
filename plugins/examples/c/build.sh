#!/usr/bin/env bash
# Builds target/examples/notes-c.wasm. Needs python3 with venv, and Rust with the target wasm32-wasip2: its linker makes the
# component, and its libc speaks WASI 0.2.
set -euo pipefail
cd "$(dirname "$0")"
target=$(mkdir -p ../../../target/examples && cd ../../../target && pwd)

tools=$target/tools
if ! "$tools/bin/wit-bindgen" --version 2>/dev/null | grep -qx 'wit-bindgen-cli 0.63.0'; then
  cargo install --quiet --locked --debug --root "$tools" --version 0.63.0 --no-default-features --features c wit-bindgen-cli
fi
python=$target/venv-ziglang
if ! "$python/bin/pip" freeze 2>/dev/null | grep -qxf requirements.txt; then
  python3 -m venv "$python"
  "$python/bin/pip" install --quiet --disable-pip-version-check -r requirements.txt
fi

built=$target/examples/c
mkdir -p "$built"
"$tools/bin/wit-bindgen" c ../../../wit --world memory-provider --out-dir "$built" >/dev/null
for source in *.c "$built/memory_provider.c"; do
  "$python/bin/python" -m ziglang cc --target=wasm32-wasi -O2 -std=gnu11 -Wall -Wextra -Werror -I "$built" \
    -c "$source" -o "$built/$(basename "$source" .c).o"
done

rust=$(rustc --print sysroot)/lib/rustlib
host=$rust/$(rustc -vV | sed -n 's/^host: //p')/bin
libc=$rust/wasm32-wasip2/lib/self-contained
"$host/wasm-component-ld" --wasm-ld-path "$host/gcc-ld/wasm-ld" --entry=_initialize --gc-sections --strip-all \
  "$libc/crt1-reactor.o" "$built"/*.o "$libc/libc.a" -o "$target/examples/notes-c.wasm"
