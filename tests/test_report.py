"""The report in a real browser: nothing to load, no complaint, charts that are drawn and can be used."""

import io
import json
import shutil
import subprocess
from pathlib import Path

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
        "fct",
        "slowdown",
        "size-mean",
        "size-p50",
        "size-p99",
        "tiers-mean_utilisation",
        "event",
        "map",
    }
    assert expected | {
        "tiers-max_utilisation",
        "over-time-throughput",
        "series-throughput",
        "series-queue",
    } == set(drawn)
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


def test_a_point_can_be_looked_at_in_detail(page):
    assert "bandwidth" not in page.inner_text("#detail")
    first = page.locator("#detail pre").inner_text()
    assert 'kind = "fat-tree"' in first and 'size = "64KiB"' in first
    page.locator("#detail select").first.select_option(label="spray · 256KiB")
    assert 'size = "256KiB"' in page.locator("#detail pre").inner_text()
    assert page.locator("#detail table").first.locator("tbody tr").count() == 12


def test_what_differs_is_told(page):
    fields = {row[0]: row[1:] for row in table(page, "differences")}
    assert fields["workload.size"] == ["64KiB", "256KiB", "64KiB", "256KiB"]
    assert "topology.k" not in fields and "seed" not in fields


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


def test_data_is_valid_json_whatever_it_says(study):
    html = (study / "report.html").read_text()
    data = html.split('id="data">', 1)[1].split("</script>", 1)[0]
    report = json.loads(data)
    assert report["claims"][1]["text"] == "ECMP </script> is <b>always</b> faster"
