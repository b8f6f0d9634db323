"""Draws the picture at the top of the README and writes its sample output: `make picture`.

Both come from the study that `make run` shows: the picture is two figures of its report.
"""

import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "comparison.svg"

TITLE = "One permutation, four routing schemes: 128 hosts of a fat tree send 1 MiB each"

#: The sample in the README: everything that the study prints but where its files are.
SAMPLE = re.compile(r"(?<=```text\n).*?(?=```\n)", re.DOTALL)

#: Figures of the study's report, side by side below a title.
FIGURES = ["fct-cdf", "slowdown-cdf"]
ABOVE = 30


def compared(folder):
    """Runs the study; gives what it prints but the line that names the folder."""
    study = [NETLOOM, "study", ROOT / "examples" / "compare.toml", "--out", folder]
    # As wide as it wants to be, whatever the terminal.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    text = subprocess.run(study, check=True, capture_output=True, text=True, env=environment).stdout
    return "".join(line for line in text.splitlines(keepends=True) if str(folder) not in line)


def drawn(folder):
    """Two figures of the study as one SVG, with a title."""
    files = [folder / f"{name}.svg" for name in FIGURES]
    options = [option for file in files for option in ("--figure", file)]
    subprocess.run([NETLOOM, "report", folder, *options], check=True, capture_output=True)
    figures = [file.read_text() for file in files]
    sizes = [tuple(map(int, re.search(r'viewBox="0 0 (\d+) (\d+)"', figure).groups())) for figure in figures]
    width, height = sum(size[0] for size in sizes), max(size[1] for size in sizes) + ABOVE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="960" role="img">',
        f"<title>{TITLE}: flow completion times and slowdowns</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="8" y="20" font-size="12" font-weight="600" fill="#1d2126" font-family="Helvetica, Arial, sans-serif">{TITLE}</text>',
    ]
    for place, (figure, size) in enumerate(zip(figures, sizes, strict=True)):
        x = sum(size[0] for size in sizes[:place])
        # Ids and units of their own would clash in one document.
        inner = re.sub(r' role="img" aria-labelledby="name"', "", figure)
        inner = re.sub(r"<title.*?</title>\n", "", inner)
        inner = re.sub(
            r'width="[\d.]+in" height="[\d.]+in"', f'width="{size[0]}" height="{size[1]}"', inner, count=1
        )
        parts.append(inner.replace("<svg ", f'<svg x="{x}" y="{ABOVE}" ', 1).strip())
    return "\n".join([*parts, "</svg>", ""])


def main():
    """Writes both."""
    with tempfile.TemporaryDirectory() as folder:
        sample = compared(Path(folder))
        README.write_text(SAMPLE.sub(lambda _: sample, README.read_text(), count=1))
        PICTURE.write_text(drawn(Path(folder)))


if __name__ == "__main__":
    main()
