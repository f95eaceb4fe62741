"""Makes a wheel of a tree with bin, lib and share: `wheel.py TREE OUT VERSION TAG`. A wheel is a zip archive: its
`data/scripts` go to the environment's `bin`, its `data/data` to the environment itself. Prints the name of the file."""

import base64
import hashlib
import os
import sys
import time
import zipfile
from pathlib import Path

tree, out, version, tag = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
info, data = f"memhost-{version}.dist-info", f"memhost-{version}.data"
date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
interpreter, abi, platforms = tag.split("-")
tags = "".join(f"Tag: {interpreter}-{abi}-{platform}\n" for platform in platforms.split("."))

files = []
for path in sorted(path for path in tree.rglob("*") if path.is_file()):
    name = path.relative_to(tree)
    place = f"scripts/{name.name}" if name.parts[0] == "bin" else f"data/{name}"
    files.append((f"{data}/{place}", path.read_bytes(), path.stat().st_mode & 0o777))
readme = (tree / "share/doc/memhost/README.md").read_text()
files += [
    (
        f"{info}/METADATA",
        f"Metadata-Version: 2.1\nName: memhost\nVersion: {version}\n"
        "Summary: Shared memory for a company of AI agents, with sandboxed providers\n"
        "License: MIT OR Apache-2.0\nRequires-Python: >=3.8\n"
        f"Description-Content-Type: text/markdown\n\n{readme}".encode(),
        0o644,
    ),
    (f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: memhost\nRoot-Is-Purelib: false\n{tags}".encode(), 0o644),
]
record = ""
for name, content, _ in files:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record += f"{name},sha256={digest},{len(content)}\n"
files.append((f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode(), 0o644))

wheel = out / f"memhost-{version}-{tag}.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
    for name, content, mode in files:
        entry = zipfile.ZipInfo(name, date)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
print(wheel.name)
