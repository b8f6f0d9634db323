"use strict";
// Reads the report's data, builds the page, and redraws what depends on filters and theme.
const complaints = new Set();
function complain(message) {
  // Parts are drawn again whenever what is shown changes; what is wrong with them is said once.
  if (complaints.has(message)) return;
  complaints.add(message);
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.setAttribute("role", "alert");
  notice.textContent = `This page could not be drawn completely: ${message}. The numbers are in the outcome folders.`;
  document.body.prepend(notice);
}
addEventListener("error", ({ message, lineno }) => complain(`${message} (line ${lineno} of its script)`));

(() => {
  /** A part that fails says so, and leaves the others as they are. */
  const attempt = (part, draw) => {
    try {
      draw();
    } catch (error) {
      complain(`${part}: ${error.message}`);
      console.error(error);
    }
  };

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
  // The scheme has the colour, the network the mark, and what else is varied the dashes.
  const [colourAxis, markAxis] = [report.colour_axis ?? undefined, report.mark_axis ?? undefined];
  const otherAxes = varied.filter((i) => i !== colourAxis && i !== markAxis);
  const nameOf = (point) => varied.map((i) => point.labels[i]).filter(Boolean).join(" · ") || point.labels.filter(Boolean).join(" · ") || report.title;
  const names = points.map(nameOf);

  // Dashes and marks tell points apart without colours. Charts, keys and figures draw the same ones.
  const { looks, styles } = report;
  const COLOURS = { light: styles.light, dark: styles.dark };
  const DASHES = styles.dashes.map((lengths) => (lengths.length ? lengths : "solid"));
  const MARKS = styles.marks;
  const placeOf = (axis, label) => (axis === undefined ? 0 : Math.max(0, axes[axis].labels.indexOf(label)));
  const colour = (point) => COLOURS[theme()][looks[point].colour];
  const dash = (point) => DASHES[looks[point].dash];
  const mark = (point) => MARKS[looks[point].mark];
  const symbol = (point) => `path://${mark(point)}`;

  const checked = axes.map((axis) => new Set(axis.labels));
  const isShown = (point) => point.labels.every((label, i) => label === "" || checked[i].has(label));
  const shown = () => points.map((point, i) => i).filter((i) => isShown(points[i]));
  // More lines than this cannot be told apart: then charts begin with some of the points, and the overview has all of them.
  const MOST_LINES = 10;
  const chooseFew = () => {
    for (const i of varied) {
      if (i !== colourAxis && shown().length > MOST_LINES) checked[i] = new Set(axes[i].labels.slice(0, 1));
    }
    if (colourAxis !== undefined && shown().length > MOST_LINES) checked[colourAxis] = new Set(axes[colourAxis].labels.slice(0, MOST_LINES));
  };
  chooseFew();
  const isMany = points.length > MOST_LINES;

  const SVG = "http://www.w3.org/2000/svg";
  const svg = (name, attributes, children = []) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    children.forEach((child) => element.append(child));
    return element;
  };
  /** A key: the line and the mark as charts draw them. */
  const key = (stroke, dashes, path) =>
    svg("svg", { class: "swatch", viewBox: "0 0 34 12", width: 34, height: 12, "aria-hidden": "true" }, [
      svg("line", { x1: 0, x2: 34, y1: 6, y2: 6, stroke, "stroke-width": 2, "stroke-dasharray": Array.isArray(dashes) ? dashes.join(" ") : "none" }),
      ...(path ? [svg("path", { d: path, fill: stroke, transform: "translate(17 6) scale(4)" })] : []),
    ]);
  const swatch = (point) => key(colour(point), dash(point), mark(point));
  const named = (point) => [swatch(point), " ", names[point]];
  /** What a label of an axis looks like; nothing if it looks like no other. */
  const keyOf = (axis, label) => {
    const position = placeOf(axis, label);
    const isAlone = varied.length === 1;
    if (axis === colourAxis) {
      const point = points.findIndex((point) => point.labels[axis] === label);
      return key(colour(point), isAlone ? dash(point) : "solid", markAxis === undefined ? mark(point) : null);
    }
    if (axis === markAxis) return key(css("--quiet"), otherAxes.length ? "solid" : DASHES[position % DASHES.length], MARKS[position % MARKS.length]);
    return otherAxes.length === 1 ? key(css("--quiet"), DASHES[position % DASHES.length], null) : null;
  };

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
  let building = "";
  const onRedraw = (draw) => redraws.push({ part: building, draw });
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
    onRedraw(() => box.replaceChildren(...[build()].flat().filter(Boolean)));
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
    // After a zoom ECharts shows a tooltip once more where it was, also when the chart has been restored meanwhile and the tooltip is no more: an exception.
    chart.on("datazoom", () => chart.dispatchAction({ type: "hideTip" }));
    onRedraw(() => {
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
    if (ticks.length > 2) return ticks;
    // A short axis has the ticks of a linear one.
    const rough = (high - low) / 4;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find((step) => step * power >= rough) * power;
    const even = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) even.push(Number(tick.toPrecision(6)));
    return even;
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

  /** Marks on a curve at some shares: enough to tell it from others, and few enough to see it. */
  const marked = (point, share, before) => {
    const at = new Set([0.25, 0.5, 0.75, 0.9, 0.99].map((wanted) => before + share.findIndex((found) => found >= wanted - 1e-9)));
    return { symbol: symbol(point), showSymbol: true, showAllSymbol: true, symbolSize: (value, { dataIndex }) => (at.has(dataIndex) ? 8 : 0) };
  };

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
            name: names[i], type: "line", data, step: scale.tail ? "start" : "end", ...marked(i, share, data.length - share.length),
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
    if (points.some((point) => point.flow_level)) parts.push(points.every((point) => point.flow_level) ? "flow by flow, without packets" : "some points flow by flow, without packets");
    if (points.some((point) => point.has_background)) parts.push(points.every((point) => point.has_background) ? "a region in packets, beside flows" : "some points with a region in packets, beside flows");
    document.getElementById("about").textContent = parts.join(" · ");
    document.getElementById("colophon").textContent =
      `Made by netloom ${report.version}. Flows of the warm-up, streams and unfinished flows are in no distribution. Charts: Apache ECharts, Apache License 2.0.`;
    const notes = notices();
    if (notes.length) {
      main.append(el("div", { class: "notice", id: "warnings", role: "note" }, el("strong", {}, "Probably a mistake, or incomplete"),
        el("ul", {}, notes.map(({ texts, at }) => {
          const where = points.length === 1 ? null : ` (${at.size === points.length ? `in all ${at.size}` : `in ${at.size} of ${points.length}`} points)`;
          const isFolded = points.length > 1 && (at.size > 1 || texts.size > 1);
          const all = [...texts].map(([text, found]) => el("li", {}, texts.size > 1 ? `${text}: ` : null, found.map((i) => names[i]).join(", ")));
          return el("li", {}, [...texts.keys()][0], texts.size > 1 ? " and alike" : null, at.size === 1 && points.length > 1 ? ` (${names[[...at][0]]})` : where,
            isFolded ? el("details", {}, el("summary", {}, "Where"), el("ul", {}, all)) : null);
        }))));
    }
  }

  /** Warnings of all points; those that differ in their numbers only are one. */
  function notices() {
    const found = new Map();
    const add = (text, i) => {
      const pattern = text.replace(/\d[\d,.]*/g, "#");
      if (!found.has(pattern)) found.set(pattern, { texts: new Map(), at: new Set() });
      const { texts, at } = found.get(pattern);
      if (!texts.has(text)) texts.set(text, []);
      texts.get(text).push(i);
      at.add(i);
    };
    points.forEach((point, i) => {
      if (point.interrupted) add(`${point.interrupted} of ${point.folders.length} runs were interrupted`, i);
    });
    points.forEach((point, i) => point.warnings.forEach((warning) => add(warning, i)));
    return [...found.values()];
  }

  function filters() {
    const form = document.getElementById("filters");
    const inputs = [];
    for (const i of varied) {
      const box = el("fieldset", {}, el("legend", {}, axes[i].name));
      axes[i].labels.forEach((label) => {
        const sign = el("span");
        onRedraw(() => sign.replaceChildren(...[keyOf(i, label)].filter(Boolean)));
        const input = el("input", {
          type: "checkbox", checked: checked[i].has(label), "data-axis": axes[i].name, "data-label": label,
          onchange: (event) => {
            if (event.target.checked) checked[i].add(label); else checked[i].delete(label);
            redraw();
          },
        });
        inputs.push([input, i, label]);
        box.append(el("label", {}, input, sign, label));
      });
      form.append(box);
    }
    if (points.length > 1) {
      const count = el("output", { id: "count" });
      onRedraw(() => count.replaceChildren(`${shown().length} of ${points.length} shown`));
      const all = (choose) => () => {
        axes.forEach((axis, i) => { checked[i] = new Set(axis.labels); });
        choose();
        inputs.forEach(([input, i, label]) => { input.checked = checked[i].has(label); });
        redraw();
      };
      const button = (text, choose) => el("button", { type: "button", class: "tool", onclick: all(choose) }, text);
      form.append(el("span", { class: "count" }, count, button("Show all", () => {}), isMany ? button("Show few", chooseFew) : null));
    }
    form.addEventListener("submit", (event) => event.preventDefault());
  }

  const metrics = (where) => report.metrics.map((metric, k) => ({ ...metric, k })).filter((metric) => metric.place === where);
  const heading = (metric) => (metric.unit ? `${metric.heading} [${metric.unit}]` : metric.heading);

  const withNumbers = (where) => metrics(where).filter(({ k }) => points.some((point) => point.metrics[k]));
  const intervals = "Lines across the ends of bars: 95% confidence interval of the mean over the seeds (Student's t).";
  const hasSeeds = points.some((point) => point.folders.length > 1);

  /** One number of every point: bars, or of many points a table with the axes as its sides. */
  function mainResult() {
    const columns = withNumbers("result");
    if (points.length < 2 || !columns.length) return;
    let chosen = columns[0].k;
    const metric = () => report.metrics[chosen];
    const box = section("main-result", isMany ? `Overview: all ${points.length} points` : "Main result", null);
    const choose = choice("Show", columns.map((column) => [String(column.k), column.heading]), String(chosen), (value) => { chosen = Number(value); });
    const describe = () => `${heading(metric())}: ${shown().map((i) => `${names[i]} ${estimateText(points[i].metrics[chosen])}`).join("; ")}.`;
    if (!isMany || varied.length < 2) {
      figure(box, {
        id: "main-chart", title: "By point", controls: choose, describe,
        option: () => bars("main-chart", heading(metric()), (i) => points[i].metrics[chosen]),
      });
      if (hasSeeds) box.append(el("p", { class: "quiet" }, intervals));
      return;
    }
    let across = colourAxis;
    let shade = "row";
    box.append(el("div", { class: "controls" }, choose,
      choice("Columns", varied.map((i) => [String(i), axes[i].name]), String(across), (value) => { across = Number(value); }),
      choice("Shade", [["row", "within each row"], ["all", "over all points"]], shade, (value) => { shade = value; })));
    box.append(el("p", { class: "quiet" }, `The stronger the shade, the worse${hasSeeds ? "; mean over the seeds, with its 95% confidence interval (Student's t)" : ""}. A click on a number shows the point in detail.`));
    live(box, () => overview(metric(), chosen, across, shade === "row"));
  }

  function overview(metric, k, across, isByRow) {
    const down = varied.filter((i) => i !== across);
    const rows = new Map();
    points.forEach((point, i) => {
      const labels = down.map((axis) => point.labels[axis]);
      const id = labels.join("\n");
      if (!rows.has(id)) rows.set(id, { labels, cells: new Map() });
      rows.get(id).cells.set(point.labels[across], i);
    });
    // In the order of the axes, whatever the order of the cells.
    const order = (a, b) => down.reduce((sum, axis, n) => sum || placeOf(axis, a.labels[n]) - placeOf(axis, b.labels[n]), 0);
    const sorted = [...rows.values()].sort(order);
    const value = (i) => points[i].metrics[k]?.mean;
    const scaleOf = (list) => {
      const found = list.map(value).filter((number) => number !== undefined);
      const [low, high] = [smallest(found), largest(found)];
      // Ratios count: twice as slow is as far from the best wherever that is.
      const at = (number) => (low > 0 ? Math.log(number) : number);
      // What differs by less than half is never in the full shade.
      const span = low > 0 ? Math.max(at(high) - at(low), Math.log(1.5)) : high - low;
      return (number) => (high > low ? (at(number) - at(low)) / span : 0);
    };
    const ofAll = scaleOf(points.map((point, i) => i));
    const cell = (i, share) => {
      if (i === undefined || value(i) === undefined) return "–";
      const worse = metric.more_is_better ? 1 - share(value(i)) : share(value(i));
      return el("button", {
        type: "button", class: "cell", style: `--share:${Math.round(60 * worse)}%`, title: `${names[i]}: ${heading(metric)} ${estimateText(points[i].metrics[k])}`,
        onclick: () => { pick(i); document.getElementById("detail").scrollIntoView(); },
      }, estimate(points[i].metrics[k]));
    };
    const columns = axes[across].labels;
    const body = sorted.map(({ labels, cells }) => {
      const share = isByRow ? scaleOf([...cells.values()]) : ofAll;
      return [labels.filter(Boolean).join(" · "), ...columns.map((label) => cell(cells.get(label), share))];
    });
    const whole = table([down.map((i) => axes[i].name).join(" · "), ...columns.map((label) => [keyOf(across, label), " ", label])], body);
    whole.classList.add("overview");
    return el("figure", {}, el("figcaption", {}, el("h3", {}, heading(metric))), whole);
  }

  // What each job took.
  function jobs() {
    if (!points.some((point) => point.jobs.length)) return;
    const columns = report.job_metrics.map((metric, k) => ({ ...metric, k })).filter(({ k }) => points.some((point) => point.jobs.some((job) => job.metrics[k]?.mean)));
    const box = section("jobs", "By job", `Computation, exposed communication and waiting are means over the ranks.${hasSeeds ? " Mean over the seeds, with its 95% confidence interval (Student's t)." : ""}`);
    live(box, () => table(["", "job", ...columns.map(heading)], shown().flatMap((i) => points[i].jobs.map((job) => [named(i), job.name, ...columns.map(({ k }) => estimate(job.metrics[k]))]))));
  }

  // What the time of each job consists of.
  function criticalPaths() {
    if (!points.some((point) => point.critical.length)) return;
    const box = section("critical", "Where the time goes", `The critical path of each job: the chain of computation and messages of which each had to end before the next could begin.${hasSeeds ? " Of the first seed." : ""} On idle paths the messages would have taken the time in the last column.`);
    const us = { unit: "us" };
    live(box, () => table(
      ["", "job", "what", "of", heading({ heading: "time", ...us }), "share", "steps", heading({ heading: "on idle paths", ...us })],
      shown().flatMap((i) => points[i].critical.map((part) => [
        named(i), part.job, part.what, part.of, number(part.time_us), `${number(100 * part.share)} %`, String(part.steps), part.idle_us === null ? "" : number(part.idle_us),
      ])),
    ));
  }

  // A workload of several kinds of traffic: how each of them fared.
  function groups() {
    if (!points.some((point) => point.groups.length)) return;
    const columns = report.group_metrics.map((metric, k) => ({ ...metric, k })).filter(({ k }) => points.some((point) => point.groups.some((group) => group.metrics[k]?.mean)));
    const box = section("groups", "By kind of traffic", hasSeeds ? "Mean over the seeds, with its 95% confidence interval (Student's t)." : null);
    live(box, () => table(["", "traffic", ...columns.map(heading)], shown().flatMap((i) => points[i].groups.map((group) => [named(i), group.name, ...columns.map(({ k }) => estimate(group.metrics[k]))]))));
  }

  function results() {
    if (!points.length) return;
    const columns = withNumbers("result");
    const box = section("results", "Results", hasSeeds ? "Mean over the seeds, with its 95% confidence interval (Student's t)." : null);
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
    // How many flows the points have in a bin: one number, or the least and the most.
    const count = (bin) => {
      const found = shown().map((i) => of(i, bin.up_to)?.count).filter(Boolean);
      if (!found.length) return "";
      const [low, high] = [smallest(found), largest(found)];
      return low === high ? `${number(low)} flows` : `${number(low)}–${number(high)} flows`;
    };
    const of = (i, end) => report.by_size[i].find((bin) => bin.up_to === end);
    const few = report.too_few.reduce((sum, flows) => sum + flows, 0);
    const box = section("sizes", "Slowdown by flow size", few ? `Sizes of which a point has fewer than ten flows are left out there: ${number(few)} flows in all.` : null);
    const grid = el("div", { class: "charts three" });
    box.append(grid);
    const words = { mean: "mean", p50: "median", p99: "99th percentile" };
    for (const statistic of ["mean", "p50", "p99"]) {
      figure(grid, {
        id: `size-${statistic}`, title: words[statistic], height: 260,
        describe: () => shown().map((i) => `${names[i]}: ${bins.map((bin) => `${label(bin)} ${number(of(i, bin.up_to)?.[statistic])}`).join(", ")}`).join("; ") + ".",
        numbers: () => [["", ...bins.map((bin) => `${label(bin)} (${count(bin)})`)], shown().map((i) => [named(i), ...bins.map((bin) => number(of(i, bin.up_to)?.[statistic]))])],
        option: () => {
          const all = shown().flatMap((i) => report.by_size[i].map((bin) => bin[statistic]));
          if (!all.length) return null;
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
              xAxis: axis("flow size", { type: "category", data: bins.map((bin) => `${label(bin)}\n${count(bin)}`), nameGap: 42, axisLabel: { color: css("--quiet"), lineHeight: 15, hideOverlap: true } }),
              yAxis: axis("slowdown", { type: isWide ? "log" : "value", min: isWide ? 1 : smallest(all, 1), max: isWide ? undefined : ({ max }) => Math.max(max, 1.1), nameGap: 36 }),
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

  /** Bars, one row per point, with their values, and if there are seeds their intervals. `top` may add a tick, such as the hottest channel. */
  const bars = (id, name, value, text = (i) => estimateText(value(i)), top = () => null) => {
    const order = shown().slice().reverse();
    const ends = order.map((i) => Math.max((value(i)?.mean ?? 0) + (value(i)?.plus_minus ?? 0), top(i) ?? 0));
    // Names have at most a third of the width, and every value has room behind its bar.
    const width = document.getElementById(id).clientWidth || 600;
    const letters = 6.8;
    const left = Math.min(width / 3, largest(order.map((i) => names[i].length), 0) * letters + 8);
    const room = (i) => Math.max(40, width - left - 24 - text(i).length * letters);
    const high = largest(order.map((i, row) => (ends[row] * (width - left)) / room(i)), 0) || 1;
    const anchor = order.map((i, row) => [ends[row], row, value(i)?.mean ?? 0, value(i)?.plus_minus ?? 0, top(i) ?? -1]);
    return {
      height: 60 + 24 * order.length,
      option: {
        tooltip: tooltip({ trigger: "item", formatter: ({ dataIndex }) => tip(names[order[dataIndex]], [[colour(order[dataIndex]), name, text(order[dataIndex])]]) }),
        grid: { left: 0, right: 8, top: 4, bottom: 28, containLabel: true },
        toolbox: { show: false },
        xAxis: axis(name, { type: "value", min: 0, max: high, axisLabel: { color: css("--quiet"), formatter: number, hideOverlap: true, showMaxLabel: false } }),
        yAxis: axis("", { type: "category", data: order.map((i) => names[i]), axisLabel: { color: css("--ink"), interval: 0, width: left - 8, overflow: "truncate" } }),
        series: [
          { type: "bar", barMaxWidth: 16, data: order.map((i) => ({ value: value(i)?.mean ?? null, itemStyle: { color: colour(i) } })) },
          {
            type: "custom", silent: true, data: anchor, encode: { x: 0, y: 1 },
            renderItem: (params, api) => {
              const [end, row, mean, half, tick] = anchor[params.dataIndex];
              const [x, y] = api.coord([end, row]);
              const path = (data, width) => ({ type: "path", shape: { pathData: data }, style: { stroke: css("--ink"), fill: "none", lineWidth: width } });
              const [low] = api.coord([Math.max(0, mean - half), row]);
              const [up] = api.coord([mean + half, row]);
              const [at] = api.coord([tick, row]);
              return {
                type: "group",
                children: [
                  ...(half ? [path(`M${low} ${y}H${up}M${low} ${y - 4}V${y + 4}M${up} ${y - 4}V${y + 4}`, 1.2)] : []),
                  ...(tick >= 0 ? [path(`M${at} ${y - 8}V${y + 8}`, 2)] : []),
                  { type: "text", style: { x: x + 8, y, text: text(order[params.dataIndex]), fill: css("--ink"), fontSize: 12, verticalAlign: "middle" } },
                ],
              };
            },
          },
        ],
      },
    };
  };
  const estimateText = (value) => (!value ? "–" : !value.plus_minus ? number(value.mean) : `${number(value.mean)} ± ${number(Number(value.plus_minus.toPrecision(2)))}`);

  function events() {
    if (points.every((point) => point.flow_level)) return;
    const columns = metrics("event").filter(({ k }) => points.some((point) => point.metrics[k]?.mean));
    const box = section("events", "What happened", columns.length ? "Reordering, path changes, draining, losses, marks and pauses; what never occurred in any run is left out." : "No packet was reordered, moved to another path, marked, paused or lost.");
    if (!columns.length) return;
    let current = columns[0].k;
    const metric = () => report.metrics[current];
    if (points.length > 1) figure(box, {
      id: "event", title: "By point",
      controls: choice("Show", columns.map((column) => [String(column.k), column.heading]), String(current), (value) => { current = Number(value); }),
      describe: () => `${heading(metric())}: ${shown().map((i) => `${names[i]} ${estimateText(points[i].metrics[current])}`).join("; ")}.`,
      option: () => bars("event", heading(metric()), (i) => points[i].metrics[current]),
    });
    live(box, () => table(["", ...columns.map(heading)], shown().map((i) => [named(i), ...columns.map(({ k }) => estimate(points[i].metrics[k]))])));
  }

  function tiers() {
    const all = [...new Set(points.flatMap((point) => point.tiers.map((tier) => tier.tier)))];
    if (!all.length) return;
    const of = (i, tier) => points[i].tiers.find((other) => other.tier === tier);
    const box = section("tiers", "Link use by tier", "Share of the time in which the channels of a tier sent, from the start of the run to the end of its load: the bar and the first number are the mean over the channels, the upright line and the second number the busiest channel.");
    const grid = el("div", { class: "charts" });
    box.append(grid);
    const use = (i, tier, field) => 100 * (of(i, tier)?.[field] ?? 0);
    const short = (value) => `${Number(value.toPrecision(3))} %`;
    const text = (tier) => (i) => `${short(use(i, tier, "mean_utilisation"))} | ${short(use(i, tier, "max_utilisation"))}`;
    const fields = [["mean_utilisation", "mean"], ["max_utilisation", "busiest"], ["mean_active_utilisation", "mean while active"], ["max_active_utilisation", "busiest while active"]];
    all.forEach((tier, n) => figure(grid, {
      id: `tier-${n}`, title: tier,
      describe: () => shown().map((i) => `${names[i]}: mean ${short(use(i, tier, "mean_utilisation"))}, busiest ${short(use(i, tier, "max_utilisation"))}`).join("; ") + ".",
      numbers: () => [["", ...fields.map(([, title]) => title)], shown().map((i) => [named(i), ...fields.map(([field]) => percent(of(i, tier)?.[field] ?? 0))])],
      option: () => bars(`tier-${n}`, "% of the time", (i) => ({ mean: use(i, tier, "mean_utilisation") }), text(tier), (i) => use(i, tier, "max_utilisation")),
    }));
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
    const found = report.differences;
    const box = section("differences", "What differs", found.length ? "Fields of the scenarios that are not the same in all of them." : "The scenarios are the same but for their seeds.");
    const rows = (fields) => fields.map((difference) => [el("code", {}, difference.field), ...difference.values.map((value) => value || "–")]);
    const folded = (title, content) => el("details", {}, el("summary", {}, title), content);
    const count = (fields) => `${fields.length} ${fields.length === 1 ? "field" : "fields"}`;
    axes.forEach((axis, i) => {
      const own = found.filter((difference) => difference.axis === i);
      if (!own.length) return;
      const head = ["field", ...axis.labels];
      const [everywhere, some] = [true, false].map((wanted) => own.filter((difference) => difference.is_everywhere === wanted));
      // Where nothing else differs, the fields of some kinds are what there is.
      const [open, closed] = everywhere.length ? [everywhere, some] : [some, []];
      box.append(el("figure", {}, el("figcaption", {}, el("h3", {}, `By ${axis.name}`)), table(head, rows(open), true),
        closed.length ? folded(`${count(closed)} that only some have`, table(head, rows(closed), true)) : null));
    });
    const rest = found.filter((difference) => difference.axis === null);
    if (!rest.length) return;
    const byPoint = el("div");
    live(byPoint, () => table(["field", ...shown().map((i) => names[i])], rest.map((difference) => [el("code", {}, difference.field), ...shown().map((i) => difference.values[i] || "–")]), true));
    box.append(varied.length > 1 || points.length > MOST_LINES ? folded(`${count(rest)} that no axis alone decides on`, byPoint) : byPoint);
  }

  // ---- One point in detail -------------------------------------------------------------------------------------------------

  let detail = 0;
  let pick = () => {};

  function details() {
    if (!points.length) return;
    const box = section("detail", points.length > 1 ? "One point in detail" : "In detail", null);
    if (points.length > 1) {
      const select = choice("Point", names.map((name, i) => [String(i), name]), "0", (value) => { detail = Number(value); });
      pick = (i) => {
        detail = i;
        select.querySelector("select").value = String(i);
        redraw();
      };
      box.append(el("div", { class: "controls" }, select));
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
      el("pre", { tabindex: 0, "aria-label": "Scenario" }, report.scenarios[detail].map((line) => report.lines[line]).join("\n"))));
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
    const most = points.reduce((most, point) => point.link_use.bundles.reduce((most, used) => Math.max(most, used[1], used[3]), largest(point.link_use.use_permille, most)), 10);
    const full = Math.min(1000, Math.ceil(most / 100) * 100);
    const legend = el("span", { class: "ramp" });
    onRedraw(() => legend.replaceChildren("0 %", el("i", { style: `background:linear-gradient(90deg,${RAMPS[theme()].join(",")})` }), `${full / 10} % of the time in use`));
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
        if (network.bundles.length) return grouped(network, points[detail].link_use.bundles, full, box.clientWidth || 1000, zoom);
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

  /** A large network: groups of switches as boxes, the links between two of them as one, coloured by the busiest. */
  function grouped(network, used, full, width, zoom) {
    const isWide = width >= 700;
    const hot = ([, , , bundle]) => Math.max(used[bundle]?.[1] ?? 0, used[bundle]?.[3] ?? 0);
    const between = network.links.filter(([a, b]) => a !== b).sort((a, b) => hot(a) - hot(b));
    const within = network.nodes.map(() => []);
    network.links.filter(([a, b]) => a === b).forEach((link) => within[link[0]].push(link));
    const ratio = (Math.min(width, 1180) - 40) / network.width;
    const share = (value) => percent((value ?? 0) / 1000);
    const count = ({ switches, hosts }) => [switches ? `${switches} switches` : null, hosts ? `${hosts} hosts` : null].filter(Boolean).join(", ");
    const row = (name, mean, most) => [ramp((most ?? 0) / full), name, `mean ${share(mean)}, busiest ${share(most)}`];
    const nodes = network.nodes.map((node, i) => {
      const own = largest(within[i].map(hot), 0);
      const isFilled = within[i].length > 0;
      return {
        name: node.name, x: node.x, y: node.y, symbol: "rect", symbolSize: [Math.max(4, node.group.width * ratio), node.group.height * (isWide ? 1 : 0.5)],
        itemStyle: { color: isFilled ? ramp(own / full) : css("--panel"), borderColor: css("--quiet"), borderWidth: 1 },
        label: {
          show: isWide, fontSize: 9, lineHeight: 11, color: isFilled ? css("--paper") : css("--ink"), textBorderColor: isFilled ? css("--ink") : "transparent", textBorderWidth: isFilled ? 2 : 0,
          formatter: node.host ? String(node.group.hosts) : `${node.group.width * ratio < 6 * node.group.label.length ? node.group.label.replace("–", "\n–") : node.group.label}\n×${node.group.switches}`,
        },
      };
    });
    const titles = network.titles.map(([name, x, y], i) => ({
      name: `title ${i}`, value: name, x, y, symbolSize: 0, label: { show: true, position: "right", formatter: name, fontSize: 12, color: css("--quiet") }, tooltip: { show: false },
    }));
    return {
      height: Math.max(300, network.height * ratio + 40),
      option: {
        toolbox: { show: false },
        tooltip: tooltip({
          trigger: "item",
          formatter: ({ dataType, data, dataIndex }) => {
            if (dataType === "node") {
              const rows = within[dataIndex].map(([, , tier, bundle]) => row(`${network.bundles[bundle]} links ${network.tiers[tier]}`, used[bundle]?.[0], Math.max(used[bundle]?.[1] ?? 0, used[bundle]?.[3] ?? 0)));
              return tip(`${data.name}: ${count(network.nodes[dataIndex].group)}`, rows);
            }
            const [a, b, tier, bundle] = between[data.index];
            const [from, to] = [network.nodes[a].name, network.nodes[b].name];
            return tip(`${network.bundles[bundle]} links ${network.tiers[tier]}`, [row(`${from} → ${to}`, used[bundle]?.[0], used[bundle]?.[1]), row(`${to} → ${from}`, used[bundle]?.[2], used[bundle]?.[3])]);
          },
        }),
        series: [{
          type: "graph", layout: "none", roam: "move", zoom, left: 20, right: 20, top: 20, bottom: 20, animation: false, nodes: [...nodes, ...titles],
          links: between.map((link, index) => ({ source: link[0], target: link[1], index, lineStyle: { color: ramp(hot(link) / full), width: 0.7 + (2.6 * hot(link)) / full, opacity: 1 } })),
          emphasis: { disabled: false, scale: false, lineStyle: { width: 5 } },
        }],
      },
    };
  }

  function measured() {
    if (report.measured.length < 2) return;
    const [head, ...rows] = report.measured;
    section("measured", "Measured", null).append(table(head, rows, true));
  }

  // ---- Start ---------------------------------------------------------------------------------------------------------------

  function redraw() {
    for (const { part, draw } of redraws) attempt(part, draw);
  }

  applyTheme();
  const parts = {
    About: about, Filters: filters, "Main result": mainResult, "By job": jobs, "Where the time goes": criticalPaths, "By kind of traffic": groups, Results: results, Claims: claims, Measured: measured, "Flow completion times": distributions,
    "Slowdown by flow size": bySize, "What happened": events, "Link use": tiers, "Throughput over time": overTime,
    "What differs": differences, "In detail": details,
  };
  for (const [part, build] of Object.entries(parts)) {
    building = part;
    attempt(part, build);
  }
  redraw();

  document.getElementById("theme").addEventListener("click", () => {
    chosen = theme() === "dark" ? "light" : "dark";
    applyTheme();
    redraw();
  });
  prefersDark.addEventListener("change", () => { applyTheme(); redraw(); });
  // What has room beside it depends on the width.
  let lastWidth = main.clientWidth;
  new ResizeObserver(() => {
    if (main.clientWidth === lastWidth) return;
    lastWidth = main.clientWidth;
    // Not within the observer: what is drawn may change the width again.
    requestAnimationFrame(redraw);
  }).observe(main);
  for (const [event, state] of [["beforeprint", true], ["afterprint", false]]) {
    addEventListener(event, () => { printing = state; applyTheme(); redraw(); });
  }
  root.dataset.ready = "true";
})();
