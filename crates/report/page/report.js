"use strict";
// Reads the report's data, builds the page, and redraws what depends on filters and theme.
addEventListener("error", ({ message, lineno }) => {
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = `This page could not be drawn completely: ${message} (line ${lineno} of its script). The numbers are in the outcome folders.`;
  document.body.prepend(notice);
});

(() => {
  const report = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const main = document.getElementById("main");
  const { points, axes } = report;

  // ---- Numbers and elements ------------------------------------------------------------------------------------------------

  /** Four significant digits, without trailing zeros. */
  const number = (value) => {
    if (value === null || value === undefined) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e6 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(4)));
  };
  /** The smallest and the largest of any number of values; a call takes only some ten thousand arguments. */
  const smallest = (values, start = Infinity) => values.reduce((least, value) => Math.min(least, value), start);
  const largest = (values, start = -Infinity) => values.reduce((most, value) => Math.max(most, value), start);
  const percent = (share) => `${number(share * 100)}\u00a0%`;
  const estimate = (value) => {
    if (!value) return "–";
    const spread = !value.plus_minus ? null : el("small", {}, ` ± ${number(Number(value.plus_minus.toPrecision(2)))}`);
    return [number(value.mean), spread];
  };
  /** A size in the units that people write it in. */
  const bytes = (size) => {
    for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
      if (size >= unit && size % unit === 0) return `${size / unit} ${name}`;
    }
    for (const [unit, name] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
      if (size >= unit) return `${number(size / unit)} ${name}`;
    }
    return `${size} B`;
  };

  /** An element; text never becomes markup. */
  function el(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== false && value !== null) element.setAttribute(key, value === true ? "" : value);
    }
    for (const child of children.flat(3)) if (child !== null && child !== undefined) element.append(child);
    return element;
  }

  const table = (head, rows, words = false) =>
    el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": head.filter(Boolean).slice(0, 4).join(", ") },
      el("table", { class: words ? "words" : "" },
        el("thead", {}, el("tr", {}, head.map((cell) => el("th", { scope: "col" }, cell)))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, i) => el(i ? "td" : "th", i ? {} : { scope: "row" }, cell)))))));

  // ---- Points: names, colours, which are shown -----------------------------------------------------------------------------

  const varied = axes.map((axis, i) => i).filter((i) => axes[i].labels.length > 1);
  const [colourAxis, dashAxis] = varied;
  const nameOf = (point) => varied.map((i) => point.labels[i]).filter(Boolean).join(" · ") || point.labels.filter(Boolean).join(" · ") || report.title;
  const names = points.map(nameOf);

  // Okabe and Ito's colours, which can be told apart with any kind of colour vision; without their yellow, and lighter on dark.
  const COLOURS = {
    light: ["#0072b2", "#d55e00", "#009e73", "#b8558c", "#c98a00", "#3f9bd1", "#6a4c93", "#5c666f"],
    dark: ["#56b4e9", "#ff8a4c", "#35c99a", "#e797c1", "#f0b93a", "#9bd3f5", "#b79be0", "#b4bcc4"],
  };
  // A second sign beside the colour.
  const DASHES = ["solid", "dashed", "dotted", [8, 3, 2, 3]];
  const SYMBOLS = ["circle", "triangle", "rect", "diamond", "roundRect", "pin", "arrow"];
  const place = (point, axis) => (axis === undefined ? 0 : Math.max(0, axes[axis].labels.indexOf(points[point].labels[axis])));
  const colour = (point) => COLOURS[theme()][place(point, colourAxis) % COLOURS.light.length];
  const dash = (point) =>
    DASHES[(place(point, dashAxis) + Math.floor(place(point, colourAxis) / COLOURS.light.length)) % DASHES.length];
  const symbol = (point) => SYMBOLS[place(point, colourAxis) % SYMBOLS.length];

  const checked = axes.map((axis) => new Set(axis.labels));
  const isShown = (point) => point.labels.every((label, i) => label === "" || checked[i].has(label));
  const shown = () => points.map((point, i) => i).filter((i) => isShown(points[i]));
  // More lines than this cannot be told apart: then every further axis starts with its first label.
  const MOST_LINES = 10;
  if (points.length > MOST_LINES) {
    for (const i of varied.slice(1)) checked[i] = new Set(axes[i].labels.slice(0, 1));
  }
  const swatch = (point) =>
    el("span", { class: "swatch", "aria-hidden": "true", style: `border-color:${colour(point)};border-top-style:${Array.isArray(dash(point)) ? "double" : dash(point)}` });
  const named = (point) => [swatch(point), " ", names[point]];

  // ---- Theme ---------------------------------------------------------------------------------------------------------------

  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  let printing = false;
  function theme() {
    if (printing) return "light";
    return chosen ?? (prefersDark.matches ? "dark" : "light");
  }
  function applyTheme() {
    root.dataset.theme = theme();
    const button = document.getElementById("theme");
    button.textContent = theme() === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Use ${theme() === "dark" ? "light" : "dark"} colours`);
  }
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // ---- Figures -------------------------------------------------------------------------------------------------------------

  /** Everything that is drawn anew when filters or theme change. */
  const redraws = [];
  const charts = [];

  const section = (id, title, text) => {
    const box = el("section", { id, "aria-labelledby": `${id}-title` },
      el("h2", { id: `${id}-title` }, title), text ? el("p", { class: "quiet" }, text) : null);
    main.append(box);
    return box;
  };

  /** A part of the page that depends on what is shown. */
  function live(parent, build) {
    const box = el("div");
    parent.append(box);
    redraws.push(() => box.replaceChildren(...[build()].flat().filter(Boolean)));
  }

  /**
   * A chart with its title, its description for screen readers, and its numbers as a table.
   * `option()` gives what ECharts draws, `describe()` a sentence, `numbers()` head and rows.
   */
  function figure(parent, { id, title, height = 300, canvas = false, option, describe, numbers, controls }) {
    const box = el("div", { class: "chart", id, role: "img", style: `height:${height}px` });
    const rows = el("div");
    const details = el("details", {}, el("summary", {}, "Numbers as a table"), rows);
    const whole = el("figure", {}, el("figcaption", {}, el("h3", {}, title), controls ?? null), box, numbers ? details : null);
    parent.append(whole);
    const chart = echarts.init(box, null, { renderer: canvas ? "canvas" : "svg" });
    charts.push(chart);
    redraws.push(() => {
      const content = option();
      whole.hidden = !content;
      if (!content) return;
      if (typeof content.height === "number") box.style.height = `${content.height}px`;
      chart.resize();
      chart.setOption({ ...look(), ...content.option }, true);
      box.setAttribute("aria-label", `${title}. ${describe ? describe() : ""}`);
      if (numbers && details.open) rows.replaceChildren(table(...numbers()));
    });
    details.addEventListener("toggle", () => {
      if (details.open) rows.replaceChildren(table(...numbers()));
    });
    return chart;
  }

  /** What all charts have in common. */
  function look() {
    return {
      animation: false,
      textStyle: { fontFamily: "system-ui, 'Liberation Sans', Arial, sans-serif", color: css("--ink") },
      grid: { left: 32, right: 16, top: 16, bottom: 28, containLabel: true },
      toolbox: {
        show: !printing, right: 0, top: -6, itemSize: 12, iconStyle: { borderColor: css("--quiet") },
        feature: { dataZoom: { title: { zoom: "Zoom: drag a box", back: "Zoom back" } }, restore: { title: "Show all" }, saveAsImage: { title: "Save", name: "netloom" } },
      },
    };
  }
  const tooltip = (more) => ({
    confine: true, backgroundColor: css("--paper"), borderColor: css("--rule"), textStyle: { color: css("--ink"), fontSize: 13 }, ...more,
  });
  const axis = (name, more = {}) => ({
    name, nameLocation: "middle", nameGap: 28,
    nameTextStyle: { color: css("--quiet") },
    axisLabel: { color: css("--quiet"), hideOverlap: true, formatter: typeof more.data === "undefined" ? number : undefined },
    axisLine: { show: true, lineStyle: { color: css("--rule") } },
    axisTick: { lineStyle: { color: css("--rule") } },
    splitLine: { show: more.type !== "category", lineStyle: { color: css("--rule"), opacity: 0.7 } },
    minorSplitLine: { show: false },
    ...more,
  });
  /** Ticks at 1, 2, 5, 10, … where a logarithmic axis is short, so that more than a power of ten or none is named. */
  const logTicks = (low, high) => {
    const steps = high / low > 1000 ? [1] : high / low > 50 ? [1, 3] : [1, 1.5, 2, 3, 5, 7];
    const ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
      for (const tick of steps.map((step) => step * 10 ** power)) if (tick >= low && tick <= high) ticks.push(tick);
    }
    return ticks;
  };
  const logAxis = (name, low, high, more = {}) => {
    const base = axis(name, more);
    const customValues = logTicks(low, high);
    return { ...base, type: "log", min: low, max: high, axisLabel: { ...base.axisLabel, customValues }, axisTick: { ...base.axisTick, customValues } };
  };
  const escape = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const tip = (heading, lines) =>
    `<b>${escape(heading)}</b><br>` + lines.map(([mark, name, value]) =>
      `<span style="display:inline-block;width:10px;height:10px;border-radius:2px;margin-right:6px;background:${mark}"></span>${escape(name)}: <b>${escape(value)}</b>`).join("<br>");

  // ---- Distributions -------------------------------------------------------------------------------------------------------

  const scale = { tail: false, log: true };

  /** Share of the values that are at most x. */
  const shareAt = (curve, x) => {
    let low = 0, high = curve.value.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (curve.value[middle] <= x) low = middle + 1; else high = middle;
    }
    return low === 0 ? 0 : curve.share[low - 1];
  };
  /** The least value that so many of the values do not exceed. */
  const quantile = (curve, share) => curve.value[curve.share.findIndex((at) => at >= share - 1e-9)];

  function distribution(parent, id, title, unit, of) {
    const curves = () => shown().filter((i) => of(points[i]));
    const ranks = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999, 1];
    figure(parent, {
      id, title,
      describe: () => curves().map((i) => `${names[i]}: median ${number(quantile(of(points[i]), 0.5))}${unit}, 99th percentile ${number(quantile(of(points[i]), 0.99))}${unit}`).join("; ") + ".",
      numbers: () => [
        ["", ...ranks.map((rank) => (rank === 1 ? "max" : `p${Number((rank * 100).toFixed(1))}`))],
        curves().map((i) => [named(i), ...ranks.map((rank) => number(quantile(of(points[i]), rank)))]),
      ],
      option: () => {
        if (!curves().length) return null;
        const line = (i) => {
          const { value, share } = of(points[i]);
          const data = scale.tail
            ? value.map((x, k) => [x, k === 0 ? 1 : 1 - share[k - 1]])
            : [[value[0], 0], ...value.map((x, k) => [x, share[k]])];
          return {
            name: names[i], type: "line", data, step: scale.tail ? "start" : "end", showSymbol: false,
            itemStyle: { color: colour(i) }, lineStyle: { color: colour(i), width: 2, type: dash(i) }, emphasis: { disabled: true },
          };
        };
        const name = `${title}${unit ? ` [${unit.trim()}]` : ""}`;
        const low = smallest(curves().map((i) => of(points[i]).value[0]));
        const high = largest(curves().map((i) => of(points[i]).value.at(-1)));
        const y = scale.tail
          ? axis("share of flows above", { type: "log", max: 1, nameGap: 46 })
          : axis("share of flows", { type: "value", min: 0, max: 1, nameGap: 40 });
        return {
          option: {
            tooltip: tooltip({
              trigger: "axis", axisPointer: { type: "line", lineStyle: { color: css("--quiet") } },
              formatter: (items) => {
                const x = items[0].axisValue;
                return tip(`at most ${number(x)}${unit}`, curves().map((i) => [colour(i), names[i], percent(shareAt(of(points[i]), x))]));
              },
            }),
            xAxis: scale.log && high > low ? logAxis(name, low, high) : axis(name, { type: "value", min: "dataMin", max: "dataMax" }),
            yAxis: y,
            dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" }],
            series: curves().map(line),
          },
        };
      },
    });
  }

  const choice = (label, options, value, change) =>
    el("label", {}, label, el("select", { onchange: (event) => { change(event.target.value); redraw(); } },
      options.map(([key, text]) => el("option", { value: key, selected: key === value }, text))));

  // ---- The page, from top to bottom ----------------------------------------------------------------------------------------

  function about() {
    const runs = points.reduce((sum, point) => sum + point.folders.length, 0);
    const networks = report.maps.map((map) => map.name);
    const parts = [];
    if (points.length) parts.push(points.length === 1 ? "one point" : `${points.length} points`, runs === 1 ? "one run" : `${runs} runs`);
    if (networks.length === 1) parts.push(networks[0]);
    document.getElementById("about").textContent = parts.join(" · ");
    document.getElementById("colophon").textContent =
      `Made by netloom ${report.version}. Flows of the warm-up, streams and unfinished flows are in no distribution. Charts: Apache ECharts, Apache License 2.0.`;
    const interrupted = points.flatMap((point, i) => (point.interrupted ? [`${names[i]}: ${point.interrupted} of ${point.folders.length} runs were interrupted`] : []));
    const warnings = points.flatMap((point, i) => point.warnings.map((warning) => (points.length > 1 ? `${names[i]}: ${warning}` : warning)));
    const notes = [...interrupted, ...warnings];
    if (notes.length) {
      main.append(el("div", { class: "notice", id: "warnings", role: "note" }, el("strong", {}, "What is probably a mistake, or incomplete"),
        el("ul", {}, notes.map((note) => el("li", {}, note)))));
    }
  }

  function filters() {
    const form = document.getElementById("filters");
    for (const i of varied) {
      const box = el("fieldset", {}, el("legend", {}, axes[i].name));
      axes[i].labels.forEach((label) => {
        const first = points.findIndex((point) => point.labels[i] === label);
        const mark = el("span");
        if (i === colourAxis) redraws.push(() => mark.replaceChildren(swatch(first)));
        const input = el("input", {
          type: "checkbox", checked: checked[i].has(label), "data-axis": axes[i].name, "data-label": label,
          onchange: (event) => {
            if (event.target.checked) checked[i].add(label); else checked[i].delete(label);
            redraw();
          },
        });
        box.append(el("label", {}, input, i === colourAxis ? mark : null, label));
      });
      form.append(box);
    }
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  const metrics = (where) => report.metrics.map((metric, k) => ({ ...metric, k })).filter((metric) => metric.place === where);
  const heading = (metric) => (metric.unit ? `${metric.heading} [${metric.unit}]` : metric.heading);

  function results() {
    const columns = metrics("result").filter(({ k }) => points.some((point) => point.metrics[k]));
    const box = section("results", "Results",
      points.some((point) => point.folders.length > 1) ? "Mean over the seeds, with the 95% confidence interval of the mean." : null);
    live(box, () => table(["", ...columns.map(heading)], shown().map((i) => [named(i), ...columns.map(({ k }) => estimate(points[i].metrics[k]))])));
  }

  function claims() {
    if (!report.claims.length) return;
    const mark = ({ holds, gate, verdict, needs, mean_holds }) => {
      if (verdict === "cannot-be-told") {
        const met = needs === "mean" && mean_holds;
        return el("span", { class: gate && !met ? "mark no" : "mark" }, `– cannot be told${gate && !met ? " (gate)" : ""}`);
      }
      if (holds === null) return el("span", { class: "mark no" }, gate ? "✗ failed (gate)" : "– not measured");
      return holds ? el("span", { class: "mark yes" }, "✓ holds") : el("span", { class: "mark no" }, gate ? "✗ does not hold (gate)" : "✗ does not hold");
    };
    const held = report.claims.filter((claim) => claim.holds).length;
    const box = section("claims", "Claims", `${held} of ${report.claims.length} hold.`);
    box.append(table(["", "claim", "", "measured", "published", "source"], report.claims.map((claim) => [
      claim.id, [claim.text, claim.note ? el("p", {}, el("small", { class: "quiet" }, claim.note)) : null], mark(claim), claim.measured, claim.published || "–", claim.source,
    ]), true));
  }

  function distributions() {
    if (!points.some((point) => point.fct_us)) return;
    const box = section("distributions", "Flow completion times",
      "Slowdown is the completion time divided by what one idle path allows the same flow (below 1 where it takes several paths at once that are slower than its host's link). Curves are step functions through values that occurred.");
    box.append(el("div", { class: "controls" },
      choice("Show", [["cdf", "distribution"], ["tail", "tail, logarithmic"]], "cdf", (value) => { scale.tail = value === "tail"; }),
      choice("Axis", [["log", "logarithmic"], ["linear", "linear"]], "log", (value) => { scale.log = value === "log"; })));
    const grid = el("div", { class: "charts" });
    box.append(grid);
    distribution(grid, "fct", "FCT", " us", (point) => point.fct_us);
    distribution(grid, "slowdown", "Slowdown", "", (point) => point.slowdown);
  }

  function bySize() {
    const ends = [...new Set(report.by_size.flat().map((bin) => bin.up_to))].sort((a, b) => a - b);
    // Of one size the table of results says it all.
    if (ends.length < 2) return;
    const bins = ends.map((end) => report.by_size.flat().find((bin) => bin.up_to === end));
    const label = (bin) => (bin.above === bin.up_to ? bytes(bin.up_to) : `≤ ${bytes(bin.up_to)}`);
    const of = (i, end) => report.by_size[i].find((bin) => bin.up_to === end);
    const box = section("sizes", "Slowdown by flow size", null);
    const grid = el("div", { class: "charts three" });
    box.append(grid);
    const words = { mean: "mean", p50: "median", p99: "99th percentile" };
    for (const statistic of ["mean", "p50", "p99"]) {
      figure(grid, {
        id: `size-${statistic}`, title: words[statistic], height: 260,
        describe: () => shown().map((i) => `${names[i]}: ${bins.map((bin) => `${label(bin)} ${number(of(i, bin.up_to)?.[statistic])}`).join(", ")}`).join("; ") + ".",
        numbers: () => [["", ...bins.map(label)], shown().map((i) => [named(i), ...bins.map((bin) => number(of(i, bin.up_to)?.[statistic]))])],
        option: () => {
          const all = shown().flatMap((i) => report.by_size[i].map((bin) => bin[statistic]));
          const isWide = largest(all) > 20;
          return {
            option: {
              tooltip: tooltip({
                trigger: "axis",
                formatter: (items) => tip(label(bins[items[0].dataIndex]), items.filter((item) => item.value !== undefined).map((item) => {
                  const i = item.seriesId === undefined ? 0 : Number(item.seriesId);
                  return [item.color, names[i], `${number(item.value)} (${of(i, ends[item.dataIndex])?.count ?? 0} flows)`];
                })),
              }),
              xAxis: axis("flow size", { type: "category", data: bins.map(label) }),
              yAxis: axis("slowdown", { type: isWide ? "log" : "value", min: isWide ? 1 : smallest(all, 1), nameGap: 36 }),
              series: shown().map((i) => ({
                id: String(i), name: names[i], type: "line", data: ends.map((end) => of(i, end)?.[statistic]),
                symbol: symbol(i), symbolSize: 7, connectNulls: true, itemStyle: { color: colour(i) },
                lineStyle: { color: colour(i), width: 2, type: dash(i) }, emphasis: { disabled: true },
              })),
            },
          };
        },
      });
    }
  }

  /** Bars, one row per point, with the interval over the seeds. */
  const bars = (name, value) => {
    const order = shown().slice().reverse();
    return {
      height: 70 + 26 * order.length,
      option: {
        tooltip: tooltip({ trigger: "item", formatter: ({ dataIndex }) => tip(names[order[dataIndex]], [[colour(order[dataIndex]), name, estimateText(value(order[dataIndex]))]]) }),
        grid: { left: 0, right: 16, top: 4, bottom: 28, containLabel: true },
        toolbox: { show: false },
        xAxis: axis(name, { type: "value", min: 0 }),
        yAxis: axis("", { type: "category", data: order.map((i) => names[i]), axisLabel: { color: css("--ink") } }),
        series: [
          {
            type: "bar", barMaxWidth: 18, data: order.map((i) => ({ value: value(i)?.mean ?? null, itemStyle: { color: colour(i) } })),
          },
          {
            type: "custom", silent: true, data: order.map((i, k) => [k, value(i)?.mean ?? 0, value(i)?.plus_minus ?? 0]),
            encode: { x: [1], y: 0 },
            renderItem: (params, api) => {
              const half = api.value(2);
              if (!half) return null;
              const [x1, y] = api.coord([Math.max(0, api.value(1) - half), api.value(0)]);
              const [x2] = api.coord([api.value(1) + half, api.value(0)]);
              return { type: "path", shape: { pathData: `M${x1} ${y}H${x2}M${x1} ${y - 4}V${y + 4}M${x2} ${y - 4}V${y + 4}` }, style: { stroke: css("--ink"), fill: "none", lineWidth: 1.2 } };
            },
          },
        ],
      },
    };
  };
  const estimateText = (value) => (!value ? "–" : !value.plus_minus ? number(value.mean) : `${number(value.mean)} ± ${number(Number(value.plus_minus.toPrecision(2)))}`);

  function events() {
    const columns = metrics("event").filter(({ k }) => points.some((point) => point.metrics[k]?.mean));
    const box = section("events", "On the way", columns.length ? "Reordering, reroutes, drains, losses: what occurred in any run." : "Nothing was reordered, rerouted, drained, marked or lost.");
    if (!columns.length) return;
    let current = columns[0].k;
    const metric = () => report.metrics[current];
    if (points.length > 1) figure(box, {
      id: "event", title: "By scheme",
      controls: choice("Count", columns.map((column) => [String(column.k), column.heading]), String(current), (value) => { current = Number(value); }),
      describe: () => `${heading(metric())}: ${shown().map((i) => `${names[i]} ${estimateText(points[i].metrics[current])}`).join("; ")}.`,
      option: () => bars(heading(metric()), (i) => points[i].metrics[current]),
    });
    live(box, () => table(["", ...columns.map(heading)], shown().map((i) => [named(i), ...columns.map(({ k }) => estimate(points[i].metrics[k]))])));
  }

  function tiers() {
    const all = [...new Set(points.flatMap((point) => point.tiers.map((tier) => tier.tier)))];
    if (!all.length) return;
    const of = (i, tier) => points[i].tiers.find((other) => other.tier === tier);
    const box = section("tiers", "Link use by tier", "Share of the time under load in which the channels of a tier sent; in the tables also of the time from the first start to the last activity.");
    const grid = el("div", { class: "charts" });
    box.append(grid);
    for (const [field, title] of [["mean_utilisation", "All channels, mean"], ["max_utilisation", "Hottest channel"]]) {
      figure(grid, {
        id: `tiers-${field}`, title, height: 240,
        describe: () => shown().map((i) => `${names[i]}: ${all.map((tier) => `${tier} ${percent(of(i, tier)?.[field] ?? 0)}`).join(", ")}`).join("; ") + ".",
        numbers: () => [["", ...all.flatMap((tier) => [tier, `${tier}, while active`])], shown().map((i) => [named(i), ...all.flatMap((tier) => [field, field.replace("_", "_active_")].map((of_time) => percent(of(i, tier)?.[of_time] ?? 0)))])],
        option: () => ({
          option: {
            tooltip: tooltip({ trigger: "axis", axisPointer: { type: "none" }, formatter: (items) => tip(items[0].name, items.map((item) => [item.color, item.seriesName, `${number(item.value)} %`])) }),
            toolbox: { show: false },
            grid: { left: 32, right: 16, top: 16, bottom: 4, containLabel: true },
            xAxis: axis("", { type: "category", data: all }),
            yAxis: axis("% of the time", { type: "value", min: 0, nameGap: 36 }),
            series: shown().map((i) => ({ name: names[i], type: "bar", barMaxWidth: 26, itemStyle: { color: colour(i) }, emphasis: { disabled: true }, data: all.map((tier) => 100 * (of(i, tier)?.[field] ?? 0)) })),
          },
        }),
      });
    }
  }

  // Throughput of all points in one picture; one alone has it under "In detail".
  function overTime() {
    const sampled = () => shown().filter((i) => points[i].series?.tiers.length);
    const all = [...new Set(points.flatMap((point) => (point.series?.tiers ?? []).map((line) => line.name)))];
    if (points.length < 2 || !all.length) return;
    let tier = all[0];
    const of = (i) => points[i].series.tiers.find((line) => line.name === tier);
    const curves = () => sampled().filter((i) => of(i));
    const box = section("over-time", "Throughput over time", "Bytes that the channels of a tier sent, both directions together, in the first run of each point.");
    if (all.length > 1) {
      box.append(el("div", { class: "controls" }, choice("Tier", all.map((name) => [name, name]), tier, (value) => { tier = value; })));
    }
    figure(box, {
      id: "over-time-throughput", title: "Throughput",
      describe: () => curves().map((i) => `${names[i]}: at most ${number(largest(of(i).gbps))} Gbit/s, until ${number(points[i].series.time_us.at(-1))} us`).join("; ") + ".",
      numbers: () => [["", "time [us]", "Gbit/s"], curves().flatMap((i) => of(i).gbps.map((value, k) => [named(i), number(points[i].series.time_us[k]), number(value)]))],
      option: () => curves().length && ({
        option: {
          tooltip: tooltip({ trigger: "axis", formatter: (items) => tip(`${number(items[0].axisValue)} us`, items.map((item) => [item.color, item.seriesName, `${number(item.value[1])} Gbit/s`])) }),
          grid: { left: 36, right: 16, top: 16, bottom: 28, containLabel: true },
          xAxis: axis("time [us]", { type: "value", min: 0, max: "dataMax" }),
          yAxis: axis("Gbit/s", { type: "value", min: 0, nameGap: 54 }),
          dataZoom: [{ type: "inside", xAxisIndex: 0, zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" }],
          series: curves().map((i) => ({
            name: names[i], type: "line", showSymbol: false, step: "start", emphasis: { disabled: true },
            data: of(i).gbps.map((value, k) => [points[i].series.time_us[k], value]),
            itemStyle: { color: colour(i) }, lineStyle: { color: colour(i), width: 1.6, type: dash(i) },
          })),
        },
      }),
    });
  }

  function differences() {
    if (points.length < 2) return;
    const box = section("differences", "What differs", report.differences.length ? "Fields of the scenarios that are not the same in all of them, every default filled in." : "The scenarios are the same but for their seeds.");
    if (report.differences.length) {
      live(box, () => table(["field", ...shown().map((i) => names[i])], report.differences.map((difference) => [el("code", {}, difference.field), ...shown().map((i) => difference.values[i] || "–")]), true));
    }
  }

  // ---- One point in detail -------------------------------------------------------------------------------------------------

  let detail = 0;

  function details() {
    if (!points.length) return;
    const box = section("detail", points.length > 1 ? "One point in detail" : "In detail", null);
    if (points.length > 1) {
      box.append(el("div", { class: "controls" }, choice("Point", names.map((name, i) => [String(i), name]), "0", (value) => { detail = Number(value); })));
    }
    series(box);
    networkMap(box);
    live(box, () => {
      const hottest = points[detail].link_use.hottest;
      const has = (field) => hottest.some((channel) => channel[field] > 0);
      const columns = [["utilisation", "use", percent], ["active_utilisation", "use while active", percent], ["mean_queue_kb", "mean queue [kB]", number], ["max_queue_kb", "longest queue [kB]", number], ["drops", "drops", number], ["paused", "paused", percent]].filter(([field]) => field !== "drops" && field !== "paused" || has(field));
      return el("figure", {}, el("figcaption", {}, el("h3", {}, "Hottest channels")),
        table(["from → to", "tier", ...columns.map(([, title]) => title)], hottest.map((channel) => [`${channel.from} → ${channel.to}`, channel.tier, ...columns.map(([field, , show]) => show(channel[field]))])));
    });
    live(box, () => el("figure", {}, el("figcaption", {}, el("h3", {}, "Scenario, every default filled in")),
      el("p", { class: "quiet" }, "Runs: ", points[detail].folders.flatMap((folder, i) => [i ? ", " : "", el("code", {}, folder)])),
      el("pre", { tabindex: 0, "aria-label": "Scenario" }, report.scenarios[report.scenario_of[detail]])));
  }

  function series(box) {
    if (!points.some((point) => point.series)) return;
    let by = "tiers";
    const current = () => points[detail].series;
    const grid = el("div", { class: "charts" });
    box.append(el("div", { class: "controls" }, choice("Over time, by", [["tiers", "tier"], ["channels", "channel with the longest queues"]], "tiers", (value) => { by = value; })), grid);
    const chart = (id, title, unit, field) => figure(grid, {
      id, title,
      describe: () => (current()?.[by] ?? []).map((line) => `${line.name}: at most ${number(largest(line[field]))} ${unit}`).join("; ") + ".",
      numbers: () => [["time [us]", ...current()[by].map((line) => line.name)], current().time_us.map((time, k) => [number(time), ...current()[by].map((line) => number(line[field][k]))])],
      option: () => {
        const lines = current()?.[by];
        if (!lines?.length) return null;
        return {
          option: {
            tooltip: tooltip({ trigger: "axis", formatter: (items) => tip(`${number(items[0].axisValue)} us`, items.map((item) => [item.color, item.seriesName, `${number(item.value[1])} ${unit}`])) }),
            legend: { top: 0, left: 0, itemHeight: 8, textStyle: { color: css("--ink") }, icon: "rect" },
            grid: { left: 36, right: 16, top: 36, bottom: 28, containLabel: true },
            xAxis: axis("time [us]", { type: "value", min: 0, max: "dataMax" }),
            yAxis: axis(unit, { type: "value", min: 0, nameGap: 54 }),
            dataZoom: [{ type: "inside", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" }],
            series: lines.map((line, k) => ({
              name: line.name, type: "line", showSymbol: false, step: field === "gbps" ? "start" : false, emphasis: { disabled: true },
              data: line[field].map((value, at) => [current().time_us[at], value]),
              itemStyle: { color: COLOURS[theme()][k % 8] }, lineStyle: { width: 1.6, color: COLOURS[theme()][k % 8], type: DASHES[k % DASHES.length] },
            })),
          },
        };
      },
    });
    chart("series-throughput", "Throughput", "Gbit/s", "gbps");
    chart("series-queue", "Longest queue", "kB", "queue_kb");
    flowSeries(grid);
  }

  function flowSeries(grid) {
    if (!points.some((point) => point.series?.flows)) return;
    const current = () => points[detail].series?.flows;
    figure(grid, {
      id: "series-flows", title: "Payload delivered by the sampled flows",
      describe: () => `At most ${number(largest(current().gbps))} Gbit/s; up to ${largest(current().resequencing)} packets of a flow waited for their order.`,
      numbers: () => [["time [us]", "Gbit/s", "packets waiting for their order"], current().time_us.map((time, k) => [number(time), number(current().gbps[k]), number(current().resequencing[k])])],
      option: () => current() && ({
        option: {
          tooltip: tooltip({ trigger: "axis", formatter: (items) => tip(`${number(items[0].axisValue)} us`, items.map((item) => [item.color, item.seriesName, number(item.value[1])])) }),
          xAxis: axis("time [us]", { type: "value", min: 0, max: "dataMax" }),
          yAxis: axis("Gbit/s", { type: "value", min: 0, nameGap: 54 }),
          series: [{ name: "Gbit/s", type: "line", step: "start", showSymbol: false, data: current().gbps.map((value, k) => [current().time_us[k], value]), itemStyle: { color: COLOURS[theme()][0] }, lineStyle: { width: 1.6 } }],
        },
      }),
    });
  }

  // From a link that is never used to the hottest; lightness alone tells the order.
  const RAMPS = {
    light: ["#d7dce1", "#f2cf7f", "#ec9443", "#c9481f", "#7d1d12"],
    dark: ["#343b44", "#6b4a2b", "#b8642a", "#f29a3e", "#ffe08a"],
  };
  const ramp = (share) => {
    const stops = RAMPS[theme()].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
    const at = Math.min(1, Math.max(0, share)) * (stops.length - 1);
    const low = Math.min(stops.length - 2, Math.floor(at));
    return `rgb(${stops[low].map((value, k) => Math.round(value + (stops[low + 1][k] - value) * (at - low))).join(",")})`;
  };

  function networkMap(box) {
    if (!report.maps.length) return;
    // One scale for all points, so that pictures can be compared.
    const most = points.reduce((most, point) => largest(point.link_use.use_permille, most), 10);
    const full = Math.min(1000, Math.ceil(most / 100) * 100);
    const legend = el("span", { class: "ramp" });
    redraws.push(() => legend.replaceChildren("0 %", el("i", { style: `background:linear-gradient(90deg,${RAMPS[theme()].join(",")})` }), `${full / 10} % of the time in use`));
    let zoom = 1;
    const zoomed = (factor) => () => { zoom = Math.min(12, Math.max(1, zoom * factor)); chart.setOption({ series: [{ zoom, ...(zoom === 1 ? { center: null } : {}) }] }); };
    const button = (label, text, action) => el("button", { type: "button", class: "tool", "aria-label": label, onclick: action }, text);
    const controls = el("span", { class: "controls" }, legend, button("Zoom in", "+", zoomed(1.5)), button("Zoom out", "−", zoomed(1 / 1.5)));
    const map = () => report.maps[report.map_of[detail] ?? -1];
    const chart = figure(box, {
      id: "map", title: "Network, hottest links", canvas: true, height: 460, controls,
      describe: () => `${map().name}. Hottest: ${points[detail].link_use.hottest.slice(0, 3).map((channel) => `${channel.from} to ${channel.to} ${percent(channel.utilisation)}`).join(", ")}.`,
      option: () => {
        const network = map();
        if (!network) return null;
        const used = points[detail].link_use.use_permille;
        const hot = ([, , , channel]) => Math.max(used[channel] ?? 0, used[channel + 1] ?? 0);
        const links = network.links.slice().sort((a, b) => hot(a) - hot(b));
        const switches = network.nodes.filter((node) => !node.host).length;
        const width = box.clientWidth || 1000;
        const isRoomy = switches <= 90 && width >= 700;
        const dot = network.nodes.length > 400 || width < 700 ? 2 : 5;
        return {
          height: Math.min(760, Math.max(320, (network.height / network.width) * Math.min(width, 820) * (network.tree ? 1.3 : 0.85))),
          option: {
            toolbox: { show: false },
            tooltip: tooltip({
              trigger: "item",
              formatter: ({ dataType, data }) => {
                if (dataType === "node") return escape(data.name);
                const [a, b, tier, channel] = links[data.index];
                const [from, to] = [network.nodes[a].name, network.nodes[b].name];
                const row = (x, y, c) => [ramp((used[c] ?? 0) / full), `${x} → ${y}`, percent((used[c] ?? 0) / 1000)];
                return tip(network.tiers[tier], [row(from, to, channel), row(to, from, channel + 1)]);
              },
            }),
            series: [{
              type: "graph", layout: "none", roam: "move", zoom, left: 20, right: 20, top: 20, bottom: 20, animation: false,
              nodes: network.nodes.map((node) => ({
                name: node.name, x: node.x, y: node.y, symbol: node.host ? "circle" : "rect", symbolSize: node.host ? dot : isRoomy ? 16 : 6,
                itemStyle: { color: node.host ? css("--quiet") : css("--paper"), borderColor: css("--quiet"), borderWidth: node.host ? 0 : 1 },
                label: { show: !node.host && isRoomy, fontSize: 9, color: css("--ink") },
              })),
              links: links.map((link, index) => ({
                source: link[0], target: link[1], index,
                lineStyle: { color: ramp(hot(link) / full), width: 0.7 + (2.6 * hot(link)) / full, opacity: 1 },
              })),
              emphasis: { disabled: false, scale: false, lineStyle: { width: 5 } },
            }],
          },
        };
      },
    });
  }

  function measured() {
    if (report.measured.length < 2) return;
    const [head, ...rows] = report.measured;
    section("measured", "Measured", null).append(table(head, rows, true));
  }

  // ---- Start ---------------------------------------------------------------------------------------------------------------

  function redraw() {
    redraws.forEach((draw) => draw());
  }

  applyTheme();
  about();
  filters();
  if (points.length) results();
  claims();
  measured();
  distributions();
  bySize();
  events();
  tiers();
  overTime();
  differences();
  details();
  redraw();

  document.getElementById("theme").addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    applyTheme();
    redraw();
  });
  prefersDark.addEventListener("change", () => { applyTheme(); redraw(); });
  new ResizeObserver(() => charts.forEach((chart) => chart.resize())).observe(main);
  for (const [event, state] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => { printing = state; applyTheme(); redraw(); });
  }
  root.dataset.ready = "true";
})();
