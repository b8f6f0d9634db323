"""Draws the picture at the top of the README and writes its sample output: `make picture`.

Both come from the study that `make run` shows: the picture is two charts of its report, taken from the page in a browser.
"""

import os
import re
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from browser import browser, opened

NETLOOM = ROOT / "target" / "release" / "netloom"
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "comparison.svg"

TITLE = "One permutation, four routing schemes: 128 hosts of a fat tree send 1 MiB each"

#: The sample in the README: everything that the study prints but where its files are.
SAMPLE = re.compile(r"(?<=```text\n).*?(?=```\n)", re.DOTALL)

CHARTS = ["fct", "slowdown"]
WIDTH, HEIGHT, ABOVE = 480, 300, 74


def compared(folder):
    """Runs the study; gives what it prints but the line that names the folder."""
    study = [NETLOOM, "study", ROOT / "examples" / "compare.toml", "--out", folder]
    # As wide as it wants to be, whatever the terminal.
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    text = subprocess.run(study, check=True, capture_output=True, text=True, env=environment).stdout
    return "".join(line for line in text.splitlines(keepends=True) if str(folder) not in line)


def drawn(folder):
    """Two charts of the study's report as one SVG, with a title and a legend."""
    subprocess.run([NETLOOM, "report", folder], check=True, capture_output=True)
    with browser() as running, opened(running, folder / "report.html", color_scheme="light") as page:
        charts = page.evaluate(
            """([ids, width, height]) => ids.map((id) => {
                const chart = echarts.getInstanceByDom(document.getElementById(id));
                chart.setOption({ toolbox: { show: false } });
                chart.resize({ width, height });
                return chart.renderToSVGString();
            })""",
            [CHARTS, WIDTH, HEIGHT],
        )
        legend = page.evaluate(
            """[...document.querySelectorAll("#filters label")].map((label) =>
                [label.innerText, label.querySelector(".swatch line").getAttribute("stroke")])"""
        )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT + ABOVE}" width="{2 * WIDTH}" role="img">',
        f"<title>{TITLE}: flow completion times and slowdowns</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        "<style>text{font-family:system-ui,'Liberation Sans',Arial,sans-serif}</style>",
        f'<text x="16" y="26" font-size="16" font-weight="600" fill="#1d2126">{TITLE}</text>',
    ]
    x = 16
    for name, colour in legend:
        parts.append(f'<line x1="{x}" x2="{x + 24}" y1="48" y2="48" stroke="{colour}" stroke-width="3"/>')
        parts.append(f'<text x="{x + 31}" y="53" font-size="14" fill="#1d2126">{escape(name)}</text>')
        x += 62 + 7 * len(name)
    parts += [
        chart.replace("<svg ", f'<svg x="{i * WIDTH}" y="{ABOVE}" ', 1) for i, chart in enumerate(charts)
    ]
    return "\n".join([*parts, "</svg>", ""])


def main():
    """Writes both."""
    with tempfile.TemporaryDirectory() as folder:
        sample = compared(Path(folder))
        README.write_text(SAMPLE.sub(lambda _: sample, README.read_text(), count=1))
        PICTURE.write_text(drawn(Path(folder)))


if __name__ == "__main__":
    main()
