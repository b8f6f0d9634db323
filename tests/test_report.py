"""The report in a real browser: nothing to load, no complaint, charts that are drawn and can be used."""

import io
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import browser, opened
from PIL import Image, ImageChops, ImageStat

ROOT = Path(__file__).parent.parent
NETLOOM = ROOT / "target" / "release" / "netloom"
PICTURES = Path(__file__).parent / "pictures"

STUDY = """
title = "Two schemes at two sizes"
repetitions = 2
[scenario]
topology = { kind = "fat-tree", k = 4 }
workload = { kind = "permutation" }
measure = { sample = "1us" }
[[axis]]
name = "scheme"
cases = [
  { label = "ecmp", set = { "routing.preset" = "ecmp" } },
  { label = "spray", set = { "routing.preset" = "spray" } },
]
[[axis]]
name = "size"
field = "workload.size"
values = ["64KiB", "256KiB"]
[[claims]]
id = "order"
text = "ECMP never reorders"
expression = 'max(ooo_share("ecmp")) == 0'
published = "never"
source = "a textbook"
[[claims]]
id = "wrong"
text = "ECMP </script> is <b>always</b> faster"
expression = 'max(p99_fct("ecmp")) < 0'
use = "report"
"""


def netloom(*arguments):
    return subprocess.run([NETLOOM, *arguments], check=True, capture_output=True, text=True).stdout


def known_flows(cell, factor):
    """Replaces what a run measured by what is known: completion times of 10, 20, … us, every flow alone needs 10 us."""
    file = cell / "flows.parquet"
    flows = pq.read_table(file)
    order = range(1, flows.num_rows + 1)
    known = {"fct_ps": [factor * 10_000_000 * i for i in order], "ideal_fct_ps": [10_000_000 for _ in order]}
    for name, values in known.items():
        place = flows.schema.get_field_index(name)
        flows = flows.set_column(place, flows.schema.field(place), pa.array(values, pa.uint64()))
    pq.write_table(flows, file)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(STUDY)
    netloom("study", folder / "study.toml", "--out", folder / "out")
    cells = pd.read_csv(folder / "out" / "results.csv")
    for cell, scheme in zip(cells.folder, cells.scheme, strict=True):
        known_flows(folder / "out" / cell, 1 if scheme == "ecmp" else 3)
    assert netloom("report", folder / "out").strip() == f"report in {folder / 'out' / 'report.html'}"
    return folder / "out"


@pytest.fixture(scope="module")
def running():
    with browser() as running:
        yield running


@pytest.fixture
def page(running, study):
    with opened(running, study / "report.html") as page:
        yield page


def marks(page, chart):
    """How many shapes a chart consists of, on the canvas how many colours."""
    return page.evaluate(
        """(id) => {
            const box = document.getElementById(id), canvas = box.querySelector("canvas");
            if (!canvas) return box.querySelectorAll("svg path").length;
            const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            return new Set(new Uint32Array(data.buffer)).size;
        }""",
        chart,
    )


def table(page, section):
    rows = page.locator(f"#{section} table").first.locator("tbody tr")
    return [row.locator("th, td").all_inner_texts() for row in rows.all()]


def test_the_page_is_one_small_file(study):
    size = (study / "report.html").stat().st_size
    assert 1_000_000 < size < 3_000_000


def test_the_page_is_called_as_its_study(page):
    assert page.title() == page.locator("h1").inner_text() == "Two schemes at two sizes"


def test_on_paper_nothing_is_cut_off(page):
    page.set_viewport_size({"width": 700, "height": 1000})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    widths = page.locator("table:visible").evaluate_all(
        "all => all.map((table) => table.getBoundingClientRect().right)"
    )
    assert len(widths) >= 4 and max(widths) <= 700


def test_every_chart_is_drawn(page):
    charts = page.locator("figure:not([hidden]) .chart")
    drawn = {
        chart: marks(page, chart) for chart in charts.evaluate_all("all => all.map((chart) => chart.id)")
    }
    expected = {
        "main-chart",
        "fct",
        "slowdown",
        "size-mean",
        "size-p50",
        "size-p99",
        "tier-0",
        "tier-1",
        "tier-2",
        "event",
        "map",
        "over-time-throughput",
        "series-throughput",
        "series-queue",
    }
    assert expected == set(drawn)
    assert all(count > 10 for count in drawn.values()), drawn


def test_charts_say_what_they_show(page):
    for chart in page.locator("figure:not([hidden]) .chart").all():
        label = chart.get_attribute("aria-label")
        assert len(label) > 30 and "NaN" not in label and "undefined" not in label, label
    assert "NaN" not in page.inner_text("main") and "undefined" not in page.inner_text("main")
    label = page.locator("#fct").get_attribute("aria-label")
    # 16 flows of 10, 20, … 160 us, from two seeds.
    assert "ecmp · 64KiB: median 80 us, 99th percentile 160 us" in label
    assert "spray · 64KiB: median 240 us, 99th percentile 480 us" in label


def test_numbers_stand_beside_the_charts(page):
    details = page.locator("figure:has(#slowdown) details")
    details.locator("summary").focus()
    page.keyboard.press("Enter")
    # The table is made when it is first shown.
    details.locator("tbody td").first.wait_for()
    head = details.locator("thead th").all_inner_texts()
    first = details.locator("tbody tr").first.locator("td").all_inner_texts()
    assert dict(zip(head[1:], first, strict=True)) == {
        "p1": "1", "p10": "2", "p25": "4", "p50": "8", "p75": "12", "p90": "15", "p99": "16", "p99.9": "16", "max": "16"
    }  # fmt: skip


def test_claims_stand_beside_what_was_measured(page):
    rows = table(page, "claims")
    assert rows[0][0] == "order" and "✓ holds" in rows[0] and "never" in rows[0]
    assert "ECMP </script> is <b>always</b> faster" in rows[1][1] and "✗ does not hold" in rows[1]


def test_filters_choose_what_is_shown(page):
    assert len(table(page, "results")) == 4
    before = marks(page, "fct")
    page.get_by_role("checkbox", name="spray").uncheck()
    assert [row[0].strip() for row in table(page, "results")] == ["ecmp · 64KiB", "ecmp · 256KiB"]
    assert marks(page, "fct") < before
    assert "spray" not in page.locator("#fct").get_attribute("aria-label")
    page.get_by_role("checkbox", name="64KiB", exact=True).uncheck()
    assert len(table(page, "results")) == 1
    page.get_by_role("checkbox", name="256KiB", exact=True).uncheck()
    assert table(page, "results") == []
    page.get_by_role("checkbox", name="spray").check()
    page.get_by_role("checkbox", name="64KiB", exact=True).check()
    assert len(table(page, "results")) == 2


def test_hovering_tells_the_shares(page):
    page.locator("#fct").scroll_into_view_if_needed()
    box = page.locator("#fct").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] * 0.5)
    page.wait_for_function("document.getElementById('fct').innerText.includes('at most')")
    assert "ecmp · 64KiB: " in page.locator("#fct").inner_text()


def test_dragging_a_box_zooms_and_restoring_shows_all(page):
    """The magnifier above the chart, a box, and the arrow back."""
    page.locator("#fct").scroll_into_view_if_needed()
    chart = "echarts.getInstanceByDom(document.getElementById('fct'))"
    shown = lambda: page.evaluate(f"{chart}.getModel().getComponent('xAxis').axis.scale.getExtent()")
    whole = shown()
    box = page.locator("#fct").bounding_box()
    page.evaluate(
        f"{chart}.dispatchAction({{ type: 'takeGlobalCursor', key: 'dataZoomSelect', dataZoomSelectActive: true }})"
    )
    page.mouse.move(box["x"] + box["width"] * 0.4, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] * 0.6, steps=4)
    page.mouse.up()
    part = shown()
    assert part[1] - part[0] < 0.5 * (whole[1] - whole[0])
    page.evaluate(f"{chart}.dispatchAction({{ type: 'restore' }})")
    assert shown() == whole


def test_restoring_at_once_after_a_zoom_leaves_no_tooltip_behind(page):
    """ECharts would show it once more, in a box that is not there any more."""
    page.locator("#fct").scroll_into_view_if_needed()
    box = page.locator("#fct").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.4, steps=3)
    page.wait_for_function("document.getElementById('fct').innerText.includes('at most')")
    page.evaluate(
        """() => {
            const chart = echarts.getInstanceByDom(document.getElementById("fct"));
            chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: 20, end: 60 });
            chart.dispatchAction({ type: "restore" });
        }"""
    )
    page.wait_for_timeout(100)


def test_the_network_zooms(page):
    zoom = "echarts.getInstanceByDom(document.getElementById('map')).getOption().series[0].zoom"
    page.get_by_role("button", name="Zoom in").click()
    assert page.evaluate(zoom) == pytest.approx(1.5)
    page.get_by_role("button", name="Zoom out").click()
    assert page.evaluate(zoom) == pytest.approx(1)


def test_hovering_over_a_bar_tells_its_interval(page):
    page.locator("#main-chart").scroll_into_view_if_needed()
    box = page.locator("#main-chart").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 14)
    page.wait_for_function("document.getElementById('main-chart').innerText.includes('FCT p99 [us]: ')")
    assert "ecmp · 64KiB" in page.locator("#main-chart").inner_text()
    # Every bar has its value behind it.
    texts = page.locator("#main-chart svg text").all_text_contents()
    assert sum(" ± " in text for text in texts) == 4


def test_keys_are_drawn_as_the_curves_are(page):
    """Colour, dashes and mark of every key are those of its curve, and no two curves look alike."""
    looks = page.evaluate(
        """() => {
            const chart = echarts.getInstanceByDom(document.getElementById("fct"));
            return chart.getOption().series.map((line) => [
                line.lineStyle.color, [].concat(line.lineStyle.type).join(" ").replace("solid", "none"), line.symbol.replace("path://", ""),
            ]);
        }"""
    )
    keys = page.evaluate(
        """() => [...document.querySelectorAll("#results tbody .swatch")].map((key) => [
            key.querySelector("line").getAttribute("stroke"),
            key.querySelector("line").getAttribute("stroke-dasharray"),
            key.querySelector("path").getAttribute("d"),
        ])"""
    )
    assert len(keys) == 4 and keys == looks
    assert len({tuple(look) for look in looks}) == 4


def test_a_point_can_be_looked_at_in_detail(page):
    assert "bandwidth" not in page.inner_text("#detail")
    first = page.locator("#detail pre").inner_text()
    assert 'kind = "fat-tree"' in first and 'size = "64KiB"' in first
    page.locator("#detail select").first.select_option(label="spray · 256KiB")
    assert 'size = "256KiB"' in page.locator("#detail pre").inner_text()
    assert page.locator("#detail table").first.locator("tbody tr").count() == 12


def differing(page):
    """The tables of what differs, by their headings: fields with a value by label of the axis."""
    figures = page.locator("#differences figure")
    rows = lambda figure: figure.locator("table").first.locator("tbody tr").all()
    return {
        figure.locator("h3").inner_text(): {
            row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in rows(figure)
        }
        for figure in figures.all()
    }


def test_what_differs_is_told(page):
    found = differing(page)
    assert found["By size"] == {"workload.size": ["64KiB", "256KiB"]}
    assert found["By scheme"]["routing.granularity.kind"] == ["flow", "packet"]
    fields = [field for fields in found.values() for field in fields]
    assert "topology.k" not in fields and "seed" not in fields


def test_what_only_some_schemes_have_is_folded(page):
    folded = page.locator("#differences details").first
    assert "that only some have" in folded.locator("summary").inner_text()
    assert not folded.locator("table").is_visible()
    folded.locator("summary").click()
    assert folded.locator("table").is_visible()
    folded.locator("summary").click()
    assert not folded.locator("table").is_visible()


def brightness(page, selector="body"):
    return sum(ImageStat.Stat(Image.open(io.BytesIO(page.locator(selector).first.screenshot()))).mean[:3]) / 3


def test_light_and_dark(running, study, page):
    assert brightness(page, "#fct") > 200
    page.get_by_role("button", name="Use dark colours").click()
    assert brightness(page, "#fct") < 80
    with opened(running, study / "report.html", color_scheme="dark") as dark:
        assert brightness(dark, "#fct") < 80
        dark.get_by_role("button", name="Use light colours").click()
        assert brightness(dark, "#fct") > 200


def test_the_keyboard_reaches_everything(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert {"BUTTON", "INPUT", "SELECT", "SUMMARY"} <= reached


def test_it_is_readable_when_printed(running, study):
    with opened(running, study / "report.html", color_scheme="dark") as page:
        pdf = page.pdf(format="A4")
        assert pdf.startswith(b"%PDF") and len(pdf) > 50_000
        page.emulate_media(media="print")
        assert not page.locator("#theme").is_visible()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def unlike(page, expected):
    """How far the lines of a chart are from where they were: the largest mean difference of any small square.

    Fonts differ from machine to machine, so the picture is compared in small and without its labels.
    """
    found = Image.open(io.BytesIO(page.locator("#fct").screenshot())).convert("RGB").resize((280, 150))
    plot = ImageChops.difference(found, expected).crop((30, 12, 222, 120))
    squares = plot.resize((16, 9), Image.Resampling.BOX)
    return found, max(high for _, high in squares.getextrema())


def test_the_chart_looks_as_it_did(page):
    expected = Image.open(PICTURES / "fct.png").convert("RGB")
    found, difference = unlike(page, expected)
    seen = PICTURES / "fct.found.png"
    found.save(seen)
    assert difference < 16, f"{difference}: compare fct.png with {seen} beside it"
    seen.unlink()
    page.get_by_role("checkbox", name="spray").uncheck()
    assert unlike(page, expected)[1] > 32, "a line that is missing must be noticed"


def test_one_outcome_and_several(running, study, tmp_path):
    cells = sorted((study / "cells").iterdir())
    one = tmp_path / "one"
    shutil.copytree(cells[0], one)
    netloom("report", one)
    with opened(running, one / "report.html") as page:
        assert len(table(page, "results")) == 1
        assert page.locator("#filters fieldset").count() == 0
        assert marks(page, "map") > 10
    shutil.copytree(cells[-1], tmp_path / "two")
    netloom("report", one, tmp_path / "two", "--out", tmp_path / "both.html", "--title", "Both & more")
    with opened(running, tmp_path / "both.html") as page:
        assert page.title() == "Both & more"
        assert [row[0].strip() for row in table(page, "results")] == ["one", "two"]
    # The page belongs to the outcome: the outcome can still be replaced.
    scenario = one / "scenario.toml"
    netloom("run", shutil.copy(scenario, tmp_path), "--out", one, "--force")
    assert not (one / "report.html").exists()


def test_runs_without_packets_say_so(running, tmp_path):
    fields = ["--set", "topology.k=4", "--set", "workload.size=100KB", "--set", "routing.preset=spray"]
    scenario = ROOT / "examples" / "permutation.toml"
    for detail in ["flow", "packets"]:
        netloom("run", scenario, *fields, "--set", f"detail={detail}", "--out", tmp_path / detail)
    netloom("report", tmp_path / "flow")
    with opened(running, tmp_path / "flow" / "report.html") as page:
        assert page.locator("#about").inner_text().endswith("flow by flow, without packets")
        assert page.locator("#events").count() == 0
    netloom("report", tmp_path / "flow", tmp_path / "packets", "--out", tmp_path / "both.html")
    with opened(running, tmp_path / "both.html") as page:
        assert "some points flow by flow" in page.locator("#about").inner_text()
        assert page.locator("#events").count() == 1


def test_the_time_of_a_job_is_divided_up(running, tmp_path):
    netloom(
        "run",
        ROOT / "examples" / "pipeline.toml",
        "--set",
        "measure.operations=true",
        "--out",
        tmp_path / "run",
    )
    netloom("report", tmp_path / "run")
    with opened(running, tmp_path / "run" / "report.html") as page:
        parts = {row[2]: row for row in table(page, "critical")}
        assert sorted(parts) == ["computation", "message"]
        # Four stages and four micro-batches: seven computations of 50 us one after the other.
        assert parts["computation"][4:7:2] == ["350", "7"]
        assert float(parts["message"][4]) >= float(parts["message"][7]) > 100


def test_data_is_valid_json_whatever_it_says(study):
    html = (study / "report.html").read_text()
    data = html.split('id="data">', 1)[1].split("</script>", 1)[0]
    report = json.loads(data)
    assert report["claims"][1]["text"] == "ECMP </script> is <b>always</b> faster"


# ---- At size: a hundred cells of 65,536 channels ----------------------------------------------------------------------

LARGE = """
[topology]
kind = "leaf-spine"
leaves = 512
spines = 32
hosts_per_leaf = 32
[workload]
kind = "permutation"
size = "1KiB"
[measure]
sample = "4us"
"""


def many(folder, cell, points):
    """A study of many cells, each with what one run measured: only the scenario differs."""
    rows = []
    for number, (scheme, load) in enumerate(points):
        copy = folder / "cells" / str(number)
        shutil.copytree(cell, copy, copy_function=os.link)
        scenario = copy / "scenario.toml"
        text = scenario.read_text()
        scenario.unlink()
        scenario.write_text(text.replace('size = "1KiB"', f'size = "{number + 1}KiB"', 1))
        rows.append({"scheme": f"scheme-{scheme}", "load": load / 10, "seed": 1, "folder": f"cells/{number}"})
    pd.DataFrame(rows).to_csv(folder / "results.csv", index=False)
    netloom("report", folder)
    return folder / "report.html"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """The outcome of one run on a network with 65,536 channels."""
    folder = tmp_path_factory.mktemp("large")
    (folder / "large.toml").write_text(LARGE)
    netloom("run", folder / "large.toml", "--out", folder / "out")
    return folder / "out"


@pytest.mark.parametrize(
    "points", [[(i, 1) for i in range(8)], [(i, j) for i in range(10) for j in range(10)]], ids=len
)
def test_large_networks_and_many_points_open_quickly(running, large, tmp_path, points):
    page = many(tmp_path, large, points)
    assert page.stat().st_size < 5_000_000
    began = time.perf_counter()
    with opened(running, page) as page:
        took = time.perf_counter() - began
        print(
            f"{len(points)} points: {page.evaluate('document.documentElement.outerHTML.length')} characters, {took:.2f} s"
        )
        assert marks(page, "fct") > 10
        assert page.locator("[role=alert]").count() == 0
    # Three seconds on a machine that does nothing else.
    assert took < 3 * max(1, os.getloadavg()[0] / os.cpu_count()), f"{took:.2f} s"


def test_a_large_network_is_drawn_as_groups(running, large):
    """512 leaves in 32 boxes with their hosts, 32 spines, and the use of the links between them."""
    netloom("report", large)
    with opened(running, large / "report.html") as page:
        page.locator("#map").scroll_into_view_if_needed()
        chart = "echarts.getInstanceByDom(document.getElementById('map'))"
        nodes = page.evaluate(f"{chart}.getOption().series[0].nodes.map((node) => node.name)")
        assert "hosts of switches s0–s15" in nodes and "s543" in nodes
        assert len(nodes) == 32 + 32 + 32 + 3
        colours = page.evaluate(
            f"[...new Set({chart}.getOption().series[0].links.map((link) => link.lineStyle.color))].length"
        )
        assert colours > 10, "links are used differently"
        first = f"{chart}.getOption().series[0].nodes[0]"
        x, y = page.evaluate(f"{chart}.convertToPixel({{ seriesIndex: 0 }}, [{first}.x, {first}.y])")
        box = page.locator("#map").bounding_box()
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.wait_for_function("document.getElementById('map').innerText.includes('s512: 1 switches')")
        told = page.evaluate(
            f"{chart}.getOption().tooltip[0].formatter({{ dataType: 'edge', data: {chart}.getOption().series[0].links.at(-1) }})"
        )
        assert "16 links" in told and told.count("busiest") == 2


def test_many_points_open_on_an_overview_of_all(running, large, tmp_path):
    points = [(i, j) for i in range(12) for j in range(5)]
    with opened(running, many(tmp_path, large, points)) as page:
        assert page.locator("main section h2").first.inner_text() == "Overview: all 60 points"
        cells = page.locator("#main-result .cell")
        assert cells.count() == 60
        assert page.locator("#main-result tbody tr").count() == 5
        assert page.locator("#count").inner_text() == "10 of 60 shown"
        # A number leads to its point.
        cells.nth(13).click()
        assert 'size = "7KiB"' in page.locator("#detail pre").inner_text()
        page.get_by_role("button", name="Show all").click()
        assert page.locator("#count").inner_text() == "60 of 60 shown"
        # Twelve schemes at five loads: sixty looks.
        looks = page.locator("#results tbody .swatch").evaluate_all("all => all.map((key) => key.outerHTML)")
        assert len(looks) == len(set(looks)) == 60
        page.get_by_role("button", name="Show few").click()
        assert page.locator("#count").inner_text() == "10 of 60 shown"


def test_warnings_are_grouped_and_counted(running, study, tmp_path):
    copy = shutil.copytree(study, tmp_path / "copy")
    for number, summary in enumerate(sorted(copy.glob("cells/*/summary.json"))):
        content = json.loads(summary.read_text())
        content["warnings"] = [f"DCQCN had no effect: {number} packets were marked"]
        summary.write_text(json.dumps(content))
    netloom("report", copy)
    with opened(running, copy / "report.html") as page:
        items = page.locator("#warnings > ul > li")
        assert items.count() == 1
        assert "and alike (in all 4 points)" in items.first.inner_text()
        assert "spray · 256KiB" not in items.first.inner_text()
        items.locator("summary").click()
        assert "spray · 256KiB" in items.first.inner_text()


def test_an_error_of_the_script_is_shown(running, study, tmp_path):
    """One part that fails says so, and the others are there."""
    html = (study / "report.html").read_text()
    broken = tmp_path / "broken.html"
    broken.write_text(html.replace('"tiers":[{"tier"', '"tiers":[null,{"tier"'))
    context = running.new_context(offline=True)
    page = context.new_page()
    page.goto(broken.as_uri())
    page.wait_for_selector("html[data-ready]")
    assert "could not be drawn completely: Link use: " in page.locator("[role=alert]").first.inner_text()
    assert len(table(page, "results")) == 4 and marks(page, "fct") > 10
    # What is no JSON at all: nothing can be drawn, and the page says so.
    broken.write_text(html.replace('id="data">{', 'id="data">', 1))
    page.goto(broken.as_uri())
    assert "could not be drawn completely" in page.locator("[role=alert]").inner_text()
    context.close()


# ---- Figures ------------------------------------------------------------------------------------------------------------


def figure(folder, file, *options):
    """A figure as its root element and its texts."""
    netloom("report", folder, "--figure", file, *options)
    root = ElementTree.parse(file).getroot()
    return root, ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def refused(*arguments):
    done = subprocess.run([NETLOOM, "report", *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 2, done
    return done.stderr


def test_every_figure_is_drawn_for_a_column_of_a_paper(running, study, tmp_path):
    names = re.findall(
        r"^ +([a-z0-9-]+)  +",
        refused(study, "--figure", tmp_path / "fct-p9.svg").split("figures:")[1],
        re.MULTILINE,
    )
    assert len(names) > 30
    drawn = set()
    for name in names:
        done = subprocess.run(
            [NETLOOM, "report", study, "--figure", tmp_path / f"{name}.svg"],
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            why = "shows one point, and 4 are chosen" if name == "network" else "has nothing to draw: "
            assert f"`{name}` {why}" in done.stderr, done.stderr
            continue
        drawn.add(name)
    assert {
        "fct-p99",
        "fct-cdf",
        "fct-tail",
        "slowdown-mean",
        "size-p99",
        "link-use",
        "throughput-over-time",
    } <= drawn
    assert not {"job-time", "step-time"} & drawn
    page = running.new_page()
    for name in drawn:
        root, texts = figure(study, tmp_path / f"{name}.svg")
        assert root.get("width") == "3.30in"
        assert not [text for text in texts if re.search(r"\d[eE][+-]?\d|NaN|inf", text)], name
        # Nothing is cut off, in whatever font this machine has.
        page.goto((tmp_path / f"{name}.svg").as_uri())
        outside = page.evaluate(
            """() => [...document.querySelectorAll("text")].filter((text) => {
                const box = text.getBoundingClientRect(), all = document.documentElement.getBoundingClientRect();
                return box.left < all.left - 1 || box.right > all.right + 1 || box.bottom > all.bottom + 1;
            }).map((text) => text.textContent)"""
        )
        assert not outside, (name, outside)
    page.close()


def test_a_figure_says_what_its_error_bars_are(study, tmp_path):
    _, texts = figure(study, tmp_path / "fct-p99.svg")
    assert "FCT p99 [µs]" in texts and "ecmp" in texts and "64KiB" in texts
    assert "95% confidence interval" in " ".join(texts) and "2 seeds" in " ".join(texts)


def test_figures_of_known_flows(study, tmp_path):
    """16 flows of 10 to 160 us each from ECMP, three times that from spraying."""
    root, texts = figure(study, tmp_path / "fct-cdf.svg", "--only", "size=64KiB")
    assert [text for text in texts if text in ("ecmp", "spray")] == ["ecmp", "spray"]
    curves = [
        path.get("d")
        for path in root.iter("{http://www.w3.org/2000/svg}path")
        if path.get("class") == "curve"
    ]
    # The curves and their keys.
    assert len(curves) == 4
    ends = [float(re.findall(r"L([\d.]+) ", path)[-1]) for path in curves[:2]]
    assert ends[0] < ends[1]


SVG = "{http://www.w3.org/2000/svg}"


def not_cut_off(running, file):
    """That all text of a figure is within it, in whatever font this machine has."""
    page = running.new_page()
    page.goto(file.as_uri())
    outside = page.evaluate(
        """() => [...document.querySelectorAll("text")].filter((text) => {
            const box = text.getBoundingClientRect(), all = document.documentElement.getBoundingClientRect();
            return box.left < all.left - 1 || box.right > all.right + 1 || box.bottom > all.bottom + 1;
        }).map((text) => text.textContent)"""
    )
    page.close()
    assert not outside


def test_the_network_of_a_point_shows_the_use_of_its_links(running, study, tmp_path):
    """Each link once, in the colour of its busier direction, on the same scale for all points."""
    chosen = ["--only", "size=256KiB", "--only", "scheme=ecmp"]
    root, texts = figure(study, tmp_path / "network.svg", *chosen)
    assert root.get("width") == "7.00in"
    lines = [path for path in root.iter(SVG + "path") if path.get("stroke")]
    assert len(lines) == 48 and len({line.get("stroke") for line in lines}) > 5
    assert len([box for box in root.iter(SVG + "rect") if box.get("class") == "switch"]) == 20
    assert len(list(root.iter(SVG + "circle"))) == 16
    ends = [text for text in texts if "of the time in use" in text]
    spray = ["--only", "size=256KiB", "--only", "scheme=spray"]
    other = figure(study, tmp_path / "network.svg", *spray)[1]
    assert len(ends) == 1 and ends == [text for text in other if "of the time in use" in text]
    not_cut_off(running, tmp_path / "network.svg")
    assert "axes: scheme" in refused(study, "--figure", tmp_path / "network.svg", "--only", "size=64KiB")


def test_a_large_network_is_a_figure_of_groups(running, large, tmp_path):
    """32 boxes of leaves with 32 of their hosts and 32 spines, and a line for each bundle of links."""
    root, texts = figure(large, tmp_path / "network.svg")
    boxes = [box for box in root.iter(SVG + "rect") if box.get("class") == "group"]
    assert len(boxes) == 96
    assert len([path for path in root.iter(SVG + "path") if path.get("stroke")]) == 32 * 32 + 32
    assert "16384 hosts" in texts and "512 h" in texts and "×16" in texts
    not_cut_off(running, tmp_path / "network.svg")


def test_wrong_figures_are_refused(study, tmp_path):
    missing = refused(study, "--figure", tmp_path / "fct-p9.svg")
    assert (
        "did you mean `fct-p99`?" in missing and "slowdown-by-size" not in missing and "size-p99" in missing
    )
    png = refused(study, "--figure", tmp_path / "fct-p99.png")
    assert "rsvg-convert" in png and "fct-p99.svg" in png
    assert "did you mean `size`?" in refused(
        study, "--figure", tmp_path / "fct-p99.svg", "--only", "siz=64KiB"
    )
    assert "valid here: 64KiB, 256KiB" in refused(
        study, "--figure", tmp_path / "fct-p99.svg", "--only", "size=1MiB"
    )
    assert "cannot be used with" in refused(study, "--figure", tmp_path / "fct-p99.svg", "--title", "x")
    assert "--figure" in refused(study, "--only", "size=64KiB")
    assert not list(tmp_path.iterdir())


def test_the_page_is_opened(study, tmp_path):
    """With the system's program for it, or an error that names the page."""
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    opener.chmod(0o755)
    run = lambda path: subprocess.run(
        [NETLOOM, "report", study, "--open"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": str(path)},
    )
    assert run(f"{tmp_path}:{os.environ['PATH']}").returncode == 0
    assert (tmp_path / "opened").read_text().strip() == str(study / "report.html")
    failed = run(tmp_path / "nothing")
    assert failed.returncode == 1 and "open " in failed.stderr and "report.html yourself" in failed.stderr
