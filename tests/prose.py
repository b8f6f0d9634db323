"""Looks for phrases that the documentation does not use (tests/prose.toml): `make lint`.

Pages of `docs`, README, CHANGELOG, CONTRIBUTING and the docstrings of the Python package are read, and, where netloom has been built,
the texts that `netloom list` shows. Code is left out.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs" / "build"))
import book

NETLOOM = ROOT / "target" / "release" / "netloom"

#: What is looked for, and what to write in its place.
LIST = Path(__file__).with_suffix(".toml")

#: Appendices and records of what was thought at the time, which are not rewritten.
RECORDS = {"docs/speed-history.md"}


def phrases():
    """The list, as pairs of a pattern and what to write in its place."""
    return [
        (re.compile(rf"\b(?:{entry['avoid']})\b", re.IGNORECASE), entry["instead"])
        for entry in tomllib.loads(LIST.read_text())["phrases"]
    ]


def without_code(text):
    """The text with code and addresses blanked, line by line as before."""

    def blank(found):
        return re.sub(r"[^\n]", " ", found.group())

    text = re.sub(r"^( *)```.*?^\1```", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"`[^`\n]*`", blank, text)
    return re.sub(r"\]\([^)]*\)", blank, text)


def found(name, text, known):
    """What is wrong with a text, as one line each. A phrase may go over the end of a line."""
    text = without_code(text)
    flat = re.sub(r"\s", " ", text)
    for pattern, instead in known:
        for match in pattern.finditer(flat):
            line = text.count("\n", 0, match.start()) + 1
            yield f"{name}:{line}: “{match.group()}” (write: {instead})"


def listed(netloom=NETLOOM):
    """The texts of `netloom list` by their places."""

    def fields(place, all_of_them):
        for field in all_of_them:
            here = f"{place}.{field['name']}"
            yield here, field["doc"]
            for value in field["values"]:
                yield f"{here} = {value['name']}", value["doc"]
            yield from fields(here, field["fields"])

    text = subprocess.run([netloom, "list", "--json"], check=True, capture_output=True, text=True).stdout
    for entry in json.loads(text):
        place = f"netloom list: {entry['path']} {entry['name']}"
        yield place, entry["doc"]
        yield from fields(place, entry["fields"])


def texts():
    """Everything that is read, by its name."""
    pages = [
        *sorted((ROOT / "docs").rglob("*.md")),
        *(ROOT / f"{name}.md" for name in ["README", "CHANGELOG", "CONTRIBUTING"]),
    ]
    for page in pages:
        name = page.relative_to(ROOT).as_posix()
        if name not in RECORDS:
            yield name, page.read_text()
    yield "docstrings of the Python package", book.api()
    if NETLOOM.exists():
        yield from listed()


def main():
    """Prints what was found; the exit code is 1 if that is anything."""
    known = phrases()
    problems = [problem for name, text in texts() for problem in found(name, text, known)]
    print("\n".join(dict.fromkeys(problems)), file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
