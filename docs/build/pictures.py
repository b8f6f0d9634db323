"""Draws the pictures of the book (`make picture`): the decomposition of schemes, a flowcut's life, layers on a Slim Fly, the report.

The drawings come from what netloom says of itself (`explain`, `route`, `topology`), so that they show what it does.
"""

import itertools
import json
import math
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

import tomllib

ROOT = Path(__file__).parent.parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"
FOLDER = ROOT / "docs" / "pictures"

INK, SOFT, FAINT = "#1d2126", "#5c6670", "#d5dae0"
#: Distinct also for readers who do not see red and green apart.
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]


def output(*arguments, given=None):
    """What a command of netloom prints."""
    command = [NETLOOM, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, input=given).stdout


def svg(width, height, title, parts):
    """A drawing with a white ground, legible on dark pages too."""
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        "<style>text{font-family:system-ui,'Liberation Sans',Arial,sans-serif}</style>",
    ]
    return "\n".join([*head, *parts, "</svg>", ""])


def text(x, y, words, size=14, colour=INK, anchor="start", weight=400):
    """A line of text."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
        f'font-weight="{weight}">{escape(words)}</text>'
    )


def line(x1, y1, x2, y2, colour=INK, width=1.0, extra=""):
    """A straight line."""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{colour}" stroke-width="{width:g}" {extra}/>'


def rectangle(x, y, width, height, fill, stroke="none"):
    """A rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" stroke="{stroke}"/>'


#: Schemes of the picture, as presets: what is drawn of them is what `netloom explain` says.
SCHEMES = ["ecmp", "letflow", "presto", "drill", "conga", "flowcut-nic"]
QUESTIONS = {
    "placement": "who decides?",
    "granularity": "when may a path change?",
    "selector": "how is it chosen?",
}


def point(preset):
    """A preset as placement, granularity and selector."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheme.toml"
        file.write_text(f'[routing]\npreset = "{preset}"\n')
        routing = tomllib.loads(output("explain", file))["routing"]
    return [routing["placement"], routing["granularity"]["kind"], routing["selector"]["kind"]]


def decomposition():
    """Every scheme is a point of placement × granularity × selector."""
    points = {preset: point(preset) for preset in SCHEMES}
    columns = [list(dict.fromkeys(each[axis] for each in points.values())) for axis in range(3)]
    width, height, top, step = 820, 400, 96, 46
    places = [270, 480, 690]
    rows = [
        {word: top + step * i + (5 - len(column)) * step / 2 for i, word in enumerate(column)}
        for column in columns
    ]
    parts = [text(20, 30, "A routing scheme is one choice from each column", 17, weight=600)]
    for x, (axis, question) in zip(places, QUESTIONS.items(), strict=True):
        parts += [
            text(x, 58, axis, 15, anchor="middle", weight=600),
            text(x, 76, question, 13, SOFT, "middle"),
        ]
    for i, (preset, words) in enumerate(points.items()):
        y = top + step * i - step / 2 + 20
        shift = (i - (len(points) - 1) / 2) * 3.2
        stops = [
            (118, y),
            *((x, row[word] + shift) for x, row, word in zip(places, rows, words, strict=True)),
        ]
        path = f"M {stops[0][0]:g} {stops[0][1]:g}"
        for (x1, y1), (x2, y2) in itertools.pairwise(stops):
            middle = (x1 + x2) / 2
            path += f" C {middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"
        parts.append(f'<path d="{path}" fill="none" stroke="{COLOURS[i]}" stroke-width="2.4"/>')
        parts.append(text(112, y + 5, preset, 14, COLOURS[i], "end", 600))
    for x, row in zip(places, rows, strict=True):
        for word, y in row.items():
            half = 10 + 4.2 * len(word)
            parts += [
                rectangle(x - half, y - 14, 2 * half, 28, "#f4f6f8", "#9aa4ae"),
                text(x, y + 5, word, 14, anchor="middle"),
            ]
    parts.append(
        text(
            20,
            height - 16,
            "Other combinations need no code: two fields in a scenario. `netloom list` shows all kinds.",
            13,
            SOFT,
        )
    )
    return svg(width, height, "Routing schemes as combinations of placement, granularity and selector", parts)


def flowcut():
    """In flight over time: a path may change exactly where nothing is in flight."""
    width, height, left, right, base, unit = 820, 330, 70, 790, 230, 17
    #: (time, packets in flight): a burst on path A, congestion, the drain, then path B.
    steps = [
        (0, 0),
        (4, 1),
        (8, 2),
        (12, 3),
        (16, 4),
        (22, 5),
        (28, 6),
        (34, 7),
        (40, 8),
        (46, 7),
        (51, 6),
        (56, 5),
    ]
    steps += [
        (60, 4),
        (64, 3),
        (68, 2),
        (72, 1),
        (76, 0),
        (80, 1),
        (83, 2),
        (86, 3),
        (90, 4),
        (96, 4),
        (100, 4),
    ]
    x = lambda time: left + (right - left) * time / 100
    y = lambda count: base - unit * count
    spans = [
        (0, 40, COLOURS[0], "flowcut 1, path A"),
        (40, 76, COLOURS[4], "drain: the NIC sends nothing"),
        (76, 100, COLOURS[2], "flowcut 2, path B"),
    ]
    parts = [text(20, 30, "A flowcut's life: packets of one flow in flight", 17, weight=600)]
    for start, end, colour, label in spans:
        parts += [
            f'<rect x="{x(start):g}" y="50" width="{x(end) - x(start):g}" height="{base - 50:g}" fill="{colour}" opacity="0.13"/>',
            text((x(start) + x(end)) / 2, 68, label, 14, anchor="middle", weight=600),
        ]
    stair = f"M {x(0):g} {y(0):g}"
    for time, count in steps[1:]:
        stair += f" H {x(time):g} V {y(count):g}"
    parts += [
        f'<path d="{stair}" fill="none" stroke="{INK}" stroke-width="2"/>',
        line(left, base, right, base, SOFT),
        line(left, 50, left, base, SOFT),
        text(left - 10, y(0) + 5, "0", 13, SOFT, "end"),
        text(left - 10, y(8) + 5, "8", 13, SOFT, "end"),
        text(right, base + 20, "time", 13, SOFT, "end"),
    ]
    notes = [
        (0, "nothing in flight:", "any path is safe"),
        (40, "average RTT / least RTT", "exceeds the threshold"),
        (76, "nothing in flight:", "a new path is safe"),
    ]
    for time, first, second in notes:
        parts += [
            line(x(time), base, x(time), base + 34, SOFT, 1, 'stroke-dasharray="3 3"'),
            text(x(time) + 6, base + 44, first, 13),
            text(x(time) + 6, base + 61, second, 13),
        ]
    parts.append(
        text(20, height - 12, "A drain that lasts longer than drain_timeout resumes on path A.", 13, SOFT)
    )
    return svg(width, height, "The life of a flowcut: packets in flight, a drain, and the next path", parts)


SLIM_FLY = """
[topology]
kind = "slim-fly"
q = 5

[routing]
preset = "fatpaths"
selector = { construction = { kind = "fatpaths-random", layers = 4, rho = 0.6 } }
"""
#: Hosts of two switches without a link between them.
SOURCE, DESTINATION = 0, 60


def layers():
    """One pair of switches in four layers of a Slim Fly: the paths are those of `netloom route`."""
    size, top, gap = 200, 84, 8
    parts = [
        text(20, 30, "Layers on a Slim Fly: one pair of switches, four paths", 17, weight=600),
        text(
            20,
            52,
            "50 switches, 7 links each. Layer 0 has all links; the others keep 60% of them, drawn at random.",
            13,
            SOFT,
        ),
    ]
    with tempfile.TemporaryDirectory() as folder:
        scenario, exported = Path(folder) / "slim-fly.toml", Path(folder) / "slim-fly.json"
        scenario.write_text(SLIM_FLY)
        output("topology", scenario, "--export", exported)
        network = json.loads(exported.read_text())
        routes = [
            json.loads(output("route", scenario, SOURCE, DESTINATION, "--entropy", layer, "--json"))
            for layer in range(4)
        ]
    switches = [node["id"] for node in network["nodes"] if str(node["id"]).startswith("s")]
    angle = {name: 2 * math.pi * i / len(switches) - math.pi / 2 for i, name in enumerate(switches)}
    links = [(link["source"], link["target"]) for link in network.get("links", network.get("edges"))]
    links = [(a, b) for a, b in links if a in angle and b in angle]
    for layer, route in enumerate(routes):
        centre_x, centre_y, radius = 10 + gap + size / 2 + layer * (size + gap), top + size / 2, size / 2 - 10

        def place(name, centre_x=centre_x, centre_y=centre_y, radius=radius):
            return centre_x + radius * math.cos(angle[name]), centre_y + radius * math.sin(angle[name])

        parts += [line(*place(a), *place(b), FAINT, 0.6) for a, b in links]
        hops = [hop["at"] for hop in route["hops"]]
        parts += [line(*place(a), *place(b), COLOURS[layer], 3) for a, b in itertools.pairwise(hops)]
        for name in switches:
            x, y = place(name)
            is_end, is_hop = name in (hops[0], hops[-1]), name in hops
            fill = INK if is_end else COLOURS[layer] if is_hop else "#aab3bc"
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{5 if is_hop else 2}" fill="{fill}"/>')
        count = len(hops) - 1
        parts.append(
            text(centre_x, top + size + 20, f"layer {layer}: {count} hops", 14, COLOURS[layer], "middle", 600)
        )
        parts.append(text(centre_x, top + size + 38, " → ".join(hops), 12, SOFT, "middle"))
    return svg(
        4 * (size + gap) + 28, top + size + 54, "One pair of switches of a Slim Fly in four layers", parts
    )


def report(file):
    """The report of `examples/compare.toml`, as a browser shows it."""
    sys.path.insert(0, str(ROOT / "tests"))
    from browser import browser, opened

    with tempfile.TemporaryDirectory() as folder:
        output("study", ROOT / "examples" / "compare.toml", "--out", folder)
        output("report", folder)
        with (
            browser() as running,
            opened(running, Path(folder) / "report.html", color_scheme="light") as page,
        ):
            page.screenshot(path=file)


DRAWINGS = {"decomposition.svg": decomposition, "flowcut.svg": flowcut, "layers.svg": layers}


def main():
    """Draws all of them."""
    FOLDER.mkdir(exist_ok=True)
    for name, draw in DRAWINGS.items():
        (FOLDER / name).write_text(draw())
    report(FOLDER / "report.png")


if __name__ == "__main__":
    main()
