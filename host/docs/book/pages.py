"""Writes the pages of the book: pages.py INTO.

The book has the pages of the tables in host/docs/README.md and host/docs/decisions/README.md, in their order, and every
page of the repository that those lead to. They keep their places, so that their links stay what they are, but for two
things: a link to a directory leads to its README, and each README is called index, as a browser asks for it.
"""

import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DOCS = Path("host/docs")
# The address in `[text](address)` or in `[name]: address` at the beginning of a line.
ADDRESS = re.compile(r"(\]\(|^\[[^\]]+\]: )([^)\s]+)")


def tabled(page: Path) -> list[Path]:
    """The pages that the table of a page lists."""
    lines = (ROOT / page).read_text().splitlines()
    targets = [line.split("](")[1].split(")")[0] for line in lines if line.startswith("| [")]
    return [relative(page.parent / target) for target in targets]


def relative(path: Path) -> Path:
    """A path in the repository, without `..`."""
    return Path(os.path.normpath(path))


def renamed(path: Path) -> Path:
    return path.with_name("index.md") if path.name == "README.md" else path


def title(page: Path) -> str:
    for line in (ROOT / page).read_text().splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    raise SystemExit(f"{page} has no title")


class Book:
    def __init__(self, into: Path) -> None:
        self.into = into
        self.pages: list[Path] = []
        self.wrong: list[str] = []

    def address(self, page: Path, address: str) -> str:
        """What a link of a page leads to in the book, whose target then is in it, too."""
        if re.match(r"[a-z]+:|#|/", address) or re.search(r"[{\\`]", address):
            return address
        path, mark, fragment = address.partition("#")
        target = relative(page.parent / path)
        if (ROOT / target).is_dir():
            target /= "README.md"
        if target.parts[0] == ".." or not (ROOT / target).is_file():
            self.wrong.append(f"{page}: {address}")
            return address
        if target.suffix == ".md":
            self.add(target)
        else:
            (self.into / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / target, self.into / target)
        return os.path.relpath(renamed(target), page.parent) + mark + fragment

    def add(self, page: Path) -> None:
        if page in self.pages:
            return
        self.pages.append(page)
        is_code = False
        lines = []
        for line in (ROOT / page).read_text().splitlines():
            is_code ^= line.lstrip().startswith("```")
            if not is_code:
                line = ADDRESS.sub(lambda found: found[1] + self.address(page, found[2]), line)
            lines.append(line + "\n")
        target = self.into / renamed(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(lines))

    def summary(self) -> str:
        listed = [DOCS / "README.md", *tabled(DOCS / "README.md")]
        decisions = tabled(DOCS / "decisions/README.md")
        self.add(Path("README.md"))
        for page in [*listed, *decisions]:
            self.add(page)
        lines = ["# Summary", "", f"[memhost]({renamed(Path('README.md'))})", "", "# Documentation", ""]
        for page in listed:
            lines.append(f"- [{title(page)}]({renamed(page)})")
            if page == DOCS / "decisions/README.md":
                lines += [f"  - [{title(each)}]({each})" for each in decisions]
        lines += ["", "# Elsewhere in the repository", ""]
        others = set(self.pages) - {*listed, *decisions, Path("README.md")}
        lines += [f"- [{title(page)}]({renamed(page)})" for page in sorted(others)]
        return "\n".join(lines) + "\n"


into = Path(sys.argv[1])
shutil.rmtree(into, ignore_errors=True)
book = Book(into)
summary = book.summary()
if book.wrong:
    raise SystemExit("these links lead nowhere:\n" + "\n".join(book.wrong))
(into / "SUMMARY.md").write_text(summary)
