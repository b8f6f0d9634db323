"""Prints what the studies of this folder found as tables in Markdown: `python3 studies/references/table.py runs/references-*`.

One row per claim on a published number: what netloom measured, what the other simulator gave, and the ratio of the two.
"""

import json
import sys
from pathlib import Path


def rows(folder):
    """Measured and published numbers of a study, by the name of the claim."""
    for claim in json.loads((folder / "study.json").read_text())["claims"]:
        published, _, tolerance = claim["published"].partition(" ± ")
        if tolerance:
            yield claim["id"], claim["measured"], published, tolerance, claim["gate"], claim["holds"]


def ratio(ours, theirs):
    """Ours over theirs, where both are numbers."""
    try:
        return f"{float(ours) / float(theirs):.3f}"
    except (ValueError, ZeroDivisionError):
        return ""


def table(folder):
    """Prints the claims of a study that have a published number and a tolerance."""
    print(f"## {json.loads((folder / 'study.json').read_text())['title']}\n")
    print("| claim | netloom | reference | ratio | tolerance |\n| --- | --- | --- | --- | --- |")
    for name, ours, theirs, tolerance, gate, holds in rows(folder):
        what = tolerance if gate else f"{tolerance}, reported"
        print(f"| {name} | {ours} | {theirs} | {ratio(ours, theirs)} | {what if holds else f'**{what}**'} |")
    print()


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        table(Path(argument))
