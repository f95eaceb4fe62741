"""Checks every link of a built book, its fragments and its files, without the network: links.py BOOK."""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote


class Page(HTMLParser):
    """The names in a page, and what it leads to."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.targets: list[str] = []
        self.feed(file.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for attribute, value in attrs:
            if attribute in ("id", "name") and value:
                self.names.add(value)
            elif attribute in ("href", "src") and value:
                self.targets.append(value)


book = Path(sys.argv[1]).resolve()
# Its links are from the top of a site.
pages = {file: Page(file) for file in book.rglob("*.html") if file.name != "404.html"}
wrong = []
count = 0
for file, page in pages.items():
    for target in page.targets:
        if re.match(r"[a-z]+:|//", target):
            continue
        count += 1
        path, _, fragment = target.partition("#")
        found = (file.parent / unquote(path)).resolve() if path else file
        if found.is_dir():
            found /= "index.html"
        is_there = found.is_file() and found.is_relative_to(book)
        # A fragment of another file, such as a line of code, is the reader's program's matter.
        if not is_there or fragment and found in pages and unquote(fragment) not in pages[found].names:
            wrong.append(f"{file.relative_to(book)}: {target}")
if wrong:
    raise SystemExit("these links lead nowhere:\n" + "\n".join(sorted(set(wrong))))
if len(pages) < 50:
    raise SystemExit(f"the book has {len(pages)} pages only")
print(f"{len(pages)} pages, {count} links inside the book")
