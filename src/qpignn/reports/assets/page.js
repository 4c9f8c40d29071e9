// Draws the charts, the graph and the table of nodes from the JSON in #content. Ids and names come
// from users' files: they are written as text content only, never as HTML.
(() => {
  "use strict";

  const root = document.documentElement;
  const ROLES = ["given", "held out", "unlabelled", "not used"];
  const INSIDE = ["", "inside", "missed"];
  const ROWS_A_PAGE = 15;
  const VIRIDIS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"];
  const byId = (id) => document.getElementById(id);
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
  let content, nodes, graph, table;
  let chosen = -1; // row of the node shown in the panel

  // ---- light and dark -------------------------------------------------------------------------

  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

  function rememberTheme(theme) {
    try {
      localStorage.setItem("qpignn-theme", theme);
    } catch { /* storage is not allowed here: the choice lasts as long as the page is open */ }
  }

  function recallTheme() {
    try {
      const theme = localStorage.getItem("qpignn-theme");
      if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    } catch { /* as above */ }
  }

  function startTheme() {
    const button = byId("theme");
    const update = () => {
      button.setAttribute("aria-pressed", String(isDark()));
      if (graph) graph.recolour();
    };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      rememberTheme(root.dataset.theme);
      update();
    });
    prefersDark.addEventListener("change", update);
    matchMedia("print").addEventListener("change", update);
    update();
  }

  // ---- numbers --------------------------------------------------------------------------------

  const digits = (options) => new Intl.NumberFormat("en-US", options);
  const WHOLE = digits({ maximumFractionDigits: 0 });
  const FOUR = digits({ maximumSignificantDigits: 4 });
  const COMPACT = digits({ notation: "compact", maximumSignificantDigits: 4 });
  const proper = (text) => text.replace("-", "−");
  const percent = (share) => ((share ?? null) === null ? "–" : proper((100 * share).toFixed(1)) + "\u00a0%");
  let unitDecimals = FOUR; // for values in the target's unit: as many decimals as widths call for

  function number(value) {
    if (value === null || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size === Infinity) return value < 0 ? "−∞" : "∞";
    if (size && (size < 1e-4 || size >= 1e9)) return proper(value.toExponential(3));
    return proper((size >= 1000 ? WHOLE : FOUR).format(value));
  }

  function inUnit(value) {
    const size = Math.abs(value);
    const text = unitDecimals.format(value);
    return size < 1e15 && (size === 0 || /[1-9]/.test(text)) ? proper(text) : number(value);
  }

  function chooseDecimals() {
    const widths = sorted(nodes.width).filter((width) => width > 0 && width < Infinity);
    if (!widths.length) return;
    const places = clamp(2 - Math.floor(Math.log10(widths[widths.length >> 1])), 0, 12);
    unitDecimals = digits({ minimumFractionDigits: places, maximumFractionDigits: places });
  }

  const sorted = (values) => Float64Array.from(values).sort();
  const interval = (row) => `${inUnit(nodes.lower[row])} to ${inUnit(nodes.upper[row])}`;

  // ---- elements -------------------------------------------------------------------------------

  function element(name, properties, ...inside) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...inside);
    return made;
  }

  function draw(parent, name, attributes, text) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  }

  function picture(box, width, height) {
    box.replaceChildren();
    return draw(box, "svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  }

  function showTip(text, x, y) {
    const tip = byId("tip");
    tip.textContent = text;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 16 + width > innerWidth - 8 ? x - 16 - width : x + 16;
    tip.style.left = clamp(left, 8, Math.max(8, innerWidth - width - 8)) + "px";
    tip.style.top = clamp(y - height - 12, 8, Math.max(8, innerHeight - height - 8)) + "px";
  }

  const hideTip = () => { byId("tip").hidden = true; };
  const say = (text) => { byId("said").textContent = text; };

  // ---- charts ---------------------------------------------------------------------------------

  const scale = (domain, range) => (value) =>
    range[0] + ((value - domain[0]) / (domain[1] - domain[0] || 1)) * (range[1] - range[0]);

  function extent(values, pad) {
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null || !Number.isFinite(value)) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (low > high) return [0, 1];
    const room = (high - low) * pad || Math.abs(high) * 0.1 || 1;
    return [low - room, high + room];
  }

  function ticks([low, high], wanted) {
    const rough = (high - low) / Math.max(wanted, 1);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((times) => times * power >= rough * 0.999);
    const first = Math.ceil(low / step - 1e-9);
    const count = Math.floor(high / step + 1e-9) - first + 1;
    return Array.from({ length: clamp(count, 0, 50) }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  }

  function tickText(value, all) {
    const step = Math.abs(all[1] - all[0]) || Math.abs(value) || 1;
    if (Math.abs(value) >= 1e5) return proper(COMPACT.format(value));
    if (step < 1e-4) return proper(value.toExponential(1));
    const places = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
    return proper(digits({ minimumFractionDigits: places, maximumFractionDigits: places }).format(value));
  }

  const share = (value, all) => tickText(100 * value, all.map((other) => 100 * other)) + "\u00a0%";

  // Axes with a grid; returns the picture, its scales and the corners of the plot.
  function axes(box, { height, x, y, xTitle, yTitle, xText = tickText, yText = tickText, whole }) {
    const w = Math.max(box.clientWidth, 120), svg = picture(box, w, height);
    const yTicks = ticks(y, height / 52);
    const labels = yTicks.map((value) => yText(value, yTicks));
    const left = 12 + 7 * Math.max(1, ...labels.map((label) => label.length));
    const plot = { left, right: w - 14, top: yTitle ? 28 : 10, bottom: height - (xText ? 22 : 6) - (xTitle ? 22 : 0) };
    const toX = scale(x, [plot.left, plot.right]), toY = scale(y, [plot.bottom, plot.top]);
    yTicks.forEach((value, i) => {
      draw(svg, "path", { class: "grid", d: `M${plot.left} ${toY(value)}H${plot.right}` });
      draw(svg, "text", { x: left - 8, y: toY(value) + 4, "text-anchor": "end" }, labels[i]);
    });
    const xTicks = xText ? ticks(x, (plot.right - plot.left) / 64) : [];
    for (const value of xTicks.filter((tick) => !whole || Number.isInteger(tick))) {
      const at = toX(value);
      draw(svg, "path", { class: "axis", d: `M${at} ${plot.bottom}v4` });
      draw(svg, "text", { x: at, y: plot.bottom + 18, "text-anchor": "middle" }, xText(value, xTicks));
    }
    draw(svg, "path", { class: "axis", d: `M${plot.left} ${plot.bottom}H${plot.right}` });
    if (yTitle) draw(svg, "text", { x: 0, y: 12 }, short(yTitle, w / 7));
    if (xTitle) draw(svg, "text", { x: (plot.left + plot.right) / 2, y: height - 6, "text-anchor": "middle" }, short(xTitle, w / 7));
    return { svg, toX, toY, plot };
  }

  function short(text, length) {
    const letters = [...text];
    return letters.length <= length ? text : letters.slice(0, Math.max(1, Math.floor(length) - 1)).join("") + "…";
  }

  // Points answer to pointer and arrow keys with a tooltip; click or Enter chooses, where it can.
  function explore(box, svg, points, { alongX = false, choose } = {}) {
    const ring = draw(svg, "circle", { class: "cursor", r: 8, visibility: "hidden" });
    let at = -1;
    const hide = () => { at = -1; ring.setAttribute("visibility", "hidden"); hideTip(); };
    const show = (i, spoken) => {
      at = i;
      const { x, y, text } = points[i];
      for (const [key, value] of [["cx", x], ["cy", y], ["visibility", "visible"]]) ring.setAttribute(key, value);
      const corner = svg.getBoundingClientRect();
      showTip(text, corner.left + x, corner.top + y);
      if (spoken) say(text);
    };
    svg.addEventListener("pointermove", (event) => {
      const corner = svg.getBoundingClientRect();
      const x = event.clientX - corner.left, y = event.clientY - corner.top;
      let best = -1, least = alongX ? 900 : 2500;
      points.forEach((point, i) => {
        const far = (point.x - x) ** 2 + (alongX ? 0 : (point.y - y) ** 2);
        if (far < least) [best, least] = [i, far];
      });
      if (best < 0) hide(); else if (best !== at) show(best, false);
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("click", () => { if (choose && at >= 0) choose(points[at]); });
    box.onblur = hide;
    box.onkeydown = (event) => {
      const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: points.length - 1 }[event.key];
      if (next !== undefined && points.length) show(clamp(next, 0, points.length - 1), true);
      else if (event.key === "Escape") hide();
      else if (event.key === "Enter" && choose && at >= 0) choose(points[at]);
      else return;
      event.preventDefault();
    };
  }

  const CHARTS = {
    band(box) {
      const band = content.band, count = band.target.length;
      const y = extent([...band.lower, ...band.upper, ...band.target, ...band.prediction], 0.04);
      const view = axes(box, { height: box.clientWidth < 500 ? 300 : 360, x: [-0.5, count - 0.5], y, yTitle: content.target, xTitle: "held-out nodes, by true value", xText: null });
      const step = (view.plot.right - view.plot.left) / count;
      const half = clamp(step * 0.4, 0.8, 5);
      const paths = { bar: "", tick: "", dot: "", cross: "" };
      const points = band.target.map((target, i) => {
        const x = view.toX(i), lower = band.lower[i] ?? -Infinity, upper = band.upper[i] ?? Infinity;
        const top = clamp(view.toY(upper), view.plot.top, view.plot.bottom);
        const bottom = clamp(view.toY(lower), view.plot.top, view.plot.bottom);
        const inside = band.inside[i], t = view.toY(target);
        paths.bar += `M${x.toFixed(1)} ${bottom.toFixed(1)}V${top.toFixed(1)}`;
        paths.tick += `M${(x - half).toFixed(1)} ${view.toY(band.prediction[i]).toFixed(1)}h${(2 * half).toFixed(1)}`;
        if (inside) paths.dot += `M${x.toFixed(1)} ${t.toFixed(1)}h0`;
        else paths.cross += `M${(x - 3.5).toFixed(1)} ${(t - 3.5).toFixed(1)}l7 7m0-7l-7 7`;
        const row = band.node[i];
        const text = `${short(nodes.id[row] ?? "a node not listed", 80)}\n${content.target}: ${inUnit(target)} (${inside ? "inside" : "missed"})\nprediction: ${inUnit(band.prediction[i])}\ninterval: ${inUnit(lower)} to ${inUnit(upper)}`;
        return { x, y: t, text, row };
      });
      for (const [name, d] of Object.entries(paths)) draw(view.svg, "path", { class: name, d });
      view.svg.querySelector(".bar").style.strokeWidth = clamp(step * 0.72, 0.7, 14);
      view.svg.querySelector(".dot").style.strokeWidth = clamp(step * 1.05, 2.4, 7);
      explore(box, view.svg, points, { alongX: true, choose: ({ row }) => { if (row in nodes.id) choose(row, true); } });
    },

    calibration(box) {
      const levels = content.calibration;
      const low = Math.min(...levels.flatMap((point) => [point.level, point.low ?? point.coverage]), 0.9);
      const domain = [Math.max(0, Math.floor(low * 10 - 0.2) / 10), 1];
      const view = axes(box, { height: clamp(box.clientWidth * 0.86, 280, 380), x: domain, y: domain, xText: share, yText: share, xTitle: "wanted coverage", yTitle: "attained coverage" });
      const { svg, toX, toY } = view;
      draw(svg, "path", { class: "wanted", d: `M${toX(domain[0])} ${toY(domain[0])}L${toX(1)} ${toY(1)}` });
      draw(svg, "path", { class: "curve", d: line(levels.map((point) => [toX(point.level), toY(point.coverage)])) });
      const points = levels.map((point) => {
        const x = toX(point.level), y = toY(point.coverage);
        errorBar(svg, "range", x, toY(point.low ?? point.coverage), x, toY(point.high ?? point.coverage));
        draw(svg, "circle", { class: "mark", cx: x, cy: y, r: Math.abs(point.level - content.level) < 1e-9 ? 6.5 : 4.5 });
        return { x, y, text: `wanted ${percent(point.level)}\nattained ${percent(point.coverage)}\n95 % range ${percent(point.low)} to ${percent(point.high)}` };
      });
      explore(box, svg, points);
    },

    errors(box) {
      const bins = content.errors.filter((bin) => bin.width !== null && bin.error !== null);
      if (!bins.length) return;
      const x = [0, Math.max(...bins.map((bin) => bin.width)) * 1.06 || 1], y = [0, Math.max(...bins.map((bin) => bin.error)) * 1.12 || 1];
      const { svg, toX, toY } = axes(box, { height: clamp(box.clientWidth * 0.86, 280, 380), x, y, xTitle: "mean width of the interval", yTitle: "mean error of the prediction" });
      const points = bins.map((bin) => ({ x: toX(bin.width), y: toY(bin.error), text: `mean width ${number(bin.width)}\nmean error ${number(bin.error)}\n${WHOLE.format(bin.nodes)} nodes` }));
      draw(svg, "path", { class: "curve", d: line(points.map((point) => [point.x, point.y])) });
      for (const point of points) draw(svg, "circle", { class: "mark", cx: point.x, cy: point.y, r: 5 });
      explore(box, svg, points);
    },

    misses(box) {
      const { below, above, nodes: count } = content.misses;
      const expected = ((1 - content.level) / 2) * count, w = Math.max(box.clientWidth, 240);
      const svg = picture(box, w, 84), left = 112;
      const toX = scale([0, Math.max(below, above, expected) * 1.05 || 1], [left, w - 52]);
      const points = [["below interval", below], ["above interval", above]].map(([label, value], i) => {
        const y = 8 + 36 * i;
        draw(svg, "text", { x: 0, y: y + 18 }, label);
        draw(svg, "rect", { class: "block", x: left, y, width: toX(value) - left, height: 26, rx: 3 });
        draw(svg, "text", { class: "strong", x: Math.max(toX(value), toX(expected) * (toX(value) > toX(expected) - 44)) + 8, y: y + 18 }, WHOLE.format(value));
        return { x: toX(value), y: y + 13, text: `${WHOLE.format(value)} ${label}\n${percent(value / (count || 1))} of held-out nodes\n${number(expected)} expected` };
      });
      draw(svg, "path", { class: "wanted", d: `M${toX(expected)} 2V76` });
      explore(box, svg, points);
    },
  };

  function line(points) {
    const known = points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
    return known.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  }

  function errorBar(svg, kind, x1, y1, x2, y2) {
    const [cx, cy] = x1 === x2 ? [4, 0] : [0, 4];
    draw(svg, "path", { class: kind, d: `M${x1} ${y1}L${x2} ${y2}M${x1 - cx} ${y1 - cy}l${2 * cx} ${2 * cy}M${x2 - cx} ${y2 - cy}l${2 * cx} ${2 * cy}` });
  }

  function drawGroups(box, grouping, width) {
    const rows = grouping.groups, w = Math.max(box.clientWidth || width, 120), height = 36 * rows.length + 52;
    const svg = picture(box, w, height), bottom = height - 44;
    const longest = Math.max(...rows.map((row) => [...String(row.label)].length));
    const left = Math.min(longest * 7 + 14, w * 0.36), right = w - (rows.some((row) => row.flagged) ? 56 : 14);
    const low = Math.min(...rows.map((row) => row.low ?? row.coverage ?? 1), content.level);
    const domain = [Math.max(0, Math.floor(low * 10 - 0.1) / 10), 1], toX = scale(domain, [left, right]);
    const marks = ticks(domain, (right - left) / 70);
    for (const value of marks) {
      draw(svg, "path", { class: "grid", d: `M${toX(value)} 4V${bottom}` });
      draw(svg, "text", { x: toX(value), y: bottom + 18, "text-anchor": "middle" }, share(value, marks));
    }
    draw(svg, "text", { x: (left + right) / 2, y: height - 4, "text-anchor": "middle" }, "coverage");
    draw(svg, "path", { class: "wanted", d: `M${toX(content.level)} 0V${bottom}` });
    const points = rows.map((row, i) => {
      const y = 36 * i + 22, x = toX(row.coverage ?? domain[0]), kind = row.flagged ? "flagged " : "";
      draw(svg, "text", { class: "strong", x: left - 14, y: y + 4, "text-anchor": "end" }, short(row.label, (left - 14) / 6.6));
      errorBar(svg, kind + "range", toX(row.low ?? row.coverage), y, toX(row.high ?? row.coverage), y);
      if (row.flagged) {
        draw(svg, "path", { class: "flagged mark", d: `M${x} ${y - 8}l8 8l-8 8l-8-8z` });
        draw(svg, "text", { class: "word", x: w, y: y + 4, "text-anchor": "end" }, "watch");
      } else draw(svg, "circle", { class: "mark", cx: x, cy: y, r: 5.5 });
      return { x, y, text: `${short(row.label, 80)}${row.flagged ? " (watch)" : ""}\ncoverage ${percent(row.coverage)}\n95 % range ${percent(row.low)} to ${percent(row.high)}\n${WHOLE.format(row.nodes)} nodes, mean width ${number(row.width)}` };
    });
    explore(box, svg, points);
  }

  function drawTraining(box, name) {
    const { training } = content, shares = name === "coverage";
    const pairs = name === "held_out" ? training.held_out : training[name].map((value, epoch) => [epoch, value]);
    const y = extent([...pairs.map((pair) => pair[1]), ...(shares ? [content.level] : [])], 0.06);
    const { svg, toX, toY, plot } = axes(box, { height: 210, x: [0, Math.max(training.loss.length - 1, 1)], y: shares ? [Math.max(0, y[0]), Math.min(1, y[1])] : y, yText: shares ? share : tickText, xTitle: "epoch", whole: true });
    if (shares) draw(svg, "path", { class: "grid axis", d: `M${plot.left} ${toY(content.level)}H${plot.right}` });
    if (training.best_epoch >= 0) draw(svg, "path", { class: "wanted", d: `M${toX(training.best_epoch)} ${plot.top}V${plot.bottom}` });
    const points = pairs.filter((pair) => pair[1] !== null).map(([epoch, value]) => ({ x: toX(epoch), y: toY(value), text: `epoch ${epoch}${epoch === training.best_epoch ? " (kept)" : ""}\n${shares ? percent(value) : number(value)}` }));
    draw(svg, "path", { class: "curve", d: line(points.map((point) => [point.x, point.y])) });
    explore(box, svg, points, { alongX: true });
  }

  function drawCharts() {
    const groupings = content.groupings.filter((grouping) => grouping.groups.length);
    const width = Math.max(0, ...[...document.querySelectorAll('[data-chart^="group-"]')].map((box) => box.clientWidth));
    for (const box of document.querySelectorAll("[data-chart]")) {
      const name = box.dataset.chart;
      if (name.startsWith("group-")) drawGroups(box, groupings[Number(name.slice(6))], width);
      else if (name.startsWith("training-")) drawTraining(box, name.slice(9));
      else CHARTS[name](box);
    }
  }

  function startGroupings() {
    const select = byId("grouping");
    if (!select) return;
    const pick = () => {
      for (const block of document.querySelectorAll(".grouping")) block.hidden = block.dataset.grouping !== select.value;
    };
    select.addEventListener("change", () => { pick(); drawCharts(); });
    pick();
  }

  // ---- the graph ------------------------------------------------------------------------------

  function rampColour(share) {
    const at = clamp(share, 0, 1) * (VIRIDIS.length - 1), i = Math.min(Math.floor(at), VIRIDIS.length - 2);
    const part = (hex, k) => parseInt(hex.slice(2 * k, 2 * k + 2), 16);
    const mix = (k) => Math.round(part(VIRIDIS[i], k) + (at - i) * (part(VIRIDIS[i + 1], k) - part(VIRIDIS[i], k)));
    return `rgb(${mix(0)} ${mix(1)} ${mix(2)})`;
  }

  const RAMP = Array.from({ length: 65 }, (_, i) => rampColour(i / 64));

  function makeGraph() {
    const canvas = byId("graph"), pen = canvas.getContext("2d"), drawn = content.graph;
    const rows = drawn.node, count = rows.length, at = new Map(rows.map((row, i) => [row, i]));
    const x = new Float64Array(count), y = new Float64Array(count); // where nodes are on the canvas
    const finiteWidths = sorted(rows.map((row) => nodes.width[row])).filter(Number.isFinite);
    const quantile = (share) => finiteWidths[Math.round(share * (finiteWidths.length - 1))] ?? 0;
    const low = quantile(0.02), high = quantile(0.98);
    const zoom = { by: 1, dx: 0, dy: 0 };
    let size = { w: 0, h: 0 }, colours = {}, radius = 4, cursor = -1, waiting = false;

    const shade = (row) => RAMP[Math.round(64 * clamp((nodes.width[row] - low) / (high - low || 1), 0, 1))];
    const missed = (row) => nodes.role[row] === 1 && nodes.inside[row] === 2;

    function place() {
      const aspect = drawn.aspect > 0 ? drawn.aspect : 1, margin = 18;
      const w = Math.min(size.w - 2 * margin, (size.h - 2 * margin) * aspect), h = w / aspect;
      const left = (size.w - w) / 2, top = (size.h - h) / 2;
      for (let i = 0; i < count; i++) {
        x[i] = (left + drawn.x[i] * w - size.w / 2) * zoom.by + size.w / 2 + zoom.dx;
        y[i] = (top + drawn.y[i] * h - size.h / 2) * zoom.by + size.h / 2 + zoom.dy;
      }
      radius = clamp(0.26 * Math.sqrt((w * h) / count), 1.8, 6.5) * Math.min(Math.sqrt(zoom.by), 2.5);
    }

    function paintEdges() {
      const edges = drawn.edges, current = at.get(chosen) ?? -1;
      const stroke = (own) => {
        pen.beginPath();
        for (let k = 0; k + 1 < edges.length; k += 2) {
          const a = edges[k], b = edges[k + 1];
          if (own && a !== current && b !== current) continue;
          pen.moveTo(x[a], y[a]);
          pen.lineTo(x[b], y[b]);
        }
        pen.stroke();
      };
      pen.strokeStyle = colours.edge;
      pen.lineWidth = 0.7;
      pen.globalAlpha = clamp(22 / Math.sqrt(edges.length / 2 || 1), 0.07, 0.5);
      stroke(false);
      pen.globalAlpha = 1;
      if (current < 0) return;
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 1.4;
      stroke(true);
    }

    function paintNodes() {
      const marks = byId("mark").checked;
      for (let i = 0; i < count; i++) {
        const open = !Number.isFinite(nodes.width[rows[i]]);
        pen.beginPath();
        pen.arc(x[i], y[i], radius, 0, 2 * Math.PI);
        pen.fillStyle = open ? colours.card : shade(rows[i]);
        pen.fill();
        pen.lineWidth = open ? 1.6 : 0.7;
        pen.strokeStyle = open ? colours.ink : colours.edge;
        pen.stroke();
      }
      pen.lineWidth = 1.8;
      pen.strokeStyle = colours.cross;
      pen.beginPath();
      for (let i = 0; i < count && marks; i++) {
        if (!missed(rows[i])) continue;
        const r = radius + 2.4;
        pen.rect(x[i] - r, y[i] - r, 2 * r, 2 * r);
      }
      pen.stroke();
    }

    function ring(i, dashed) {
      if (i === undefined || i < 0) return;
      pen.setLineDash(dashed ? [4, 3] : []);
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2.4;
      pen.beginPath();
      pen.arc(x[i], y[i], radius + 5, 0, 2 * Math.PI);
      pen.stroke();
      pen.setLineDash([]);
    }

    function paint() {
      waiting = false;
      place();
      const ratio = devicePixelRatio || 1;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, size.w, size.h);
      paintEdges();
      paintNodes();
      ring(at.get(chosen), false);
      if (cursor !== at.get(chosen)) ring(cursor, true);
      canvas.classList.toggle("zoomed", zoom.by > 1.001);
    }

    function repaint() {
      if (!waiting) requestAnimationFrame(paint);
      waiting = true;
    }

    function resize() {
      const w = canvas.clientWidth, h = clamp(w / (drawn.aspect || 1), 240, 520), ratio = devicePixelRatio || 1;
      if (w === size.w && h === size.h && canvas.width === Math.round(w * ratio)) return;
      size = { w, h };
      canvas.style.height = h + "px";
      canvas.width = Math.round(w * ratio);
      canvas.height = Math.round(h * ratio);
      paint();
    }

    function recolour() {
      const style = getComputedStyle(root);
      for (const name of ["edge", "ink", "card", "cross"]) colours[name] = style.getPropertyValue("--" + name).trim();
      paint();
    }

    function zoomBy(factor, px = size.w / 2, py = size.h / 2) {
      const by = clamp(zoom.by * factor, 1, 40), real = by / zoom.by;
      zoom.dx = (zoom.dx - (px - size.w / 2)) * real + (px - size.w / 2);
      zoom.dy = (zoom.dy - (py - size.h / 2)) * real + (py - size.h / 2);
      zoom.by = by;
      keep();
    }

    function keep() { // some of the graph stays in sight
      const roomX = (zoom.by * size.w) / 2 - 20, roomY = (zoom.by * size.h) / 2 - 20;
      zoom.dx = zoom.by === 1 ? 0 : clamp(zoom.dx, -roomX, roomX);
      zoom.dy = zoom.by === 1 ? 0 : clamp(zoom.dy, -roomY, roomY);
      repaint();
    }

    function nearest(px, py, within = Math.max(radius + 8, 14)) {
      let best = -1, least = within ** 2;
      for (let i = 0; i < count; i++) {
        const far = (x[i] - px) ** 2 + (y[i] - py) ** 2;
        if (far < least) [best, least] = [i, far];
      }
      return best;
    }

    function step(ux, uy) { // the nearest node that lies more in this direction than beside it
      if (cursor < 0) return at.get(chosen) ?? nearest(size.w / 2, size.h / 2, Infinity);
      let best = cursor, least = Infinity;
      for (let i = 0; i < count; i++) {
        const along = (x[i] - x[cursor]) * ux + (y[i] - y[cursor]) * uy;
        const beside = Math.abs((x[i] - x[cursor]) * uy) + Math.abs((y[i] - y[cursor]) * ux);
        const far = along + 2 * beside;
        if (along > 1e-9 && beside <= along && far < least) [best, least] = [i, far];
      }
      return best;
    }

    function see(i) { // pan until the node is in sight
      place();
      if (x[i] < 12 || x[i] > size.w - 12) zoom.dx += size.w / 2 - x[i];
      if (y[i] < 12 || y[i] > size.h - 12) zoom.dy += size.h / 2 - y[i];
      keep();
    }

    function startPointer() {
      let held = null, moved = false;
      const spot = (event) => {
        const corner = canvas.getBoundingClientRect();
        return [event.clientX - corner.left, event.clientY - corner.top];
      };
      canvas.addEventListener("pointerdown", (event) => {
        held = [event.clientX, event.clientY];
        moved = false;
      });
      canvas.addEventListener("pointermove", (event) => {
        if (!held) return hover(event, nearest(...spot(event)));
        const dx = event.clientX - held[0], dy = event.clientY - held[1];
        if (!moved && Math.hypot(dx, dy) < 5) return undefined;
        if (!moved) canvas.setPointerCapture(event.pointerId);
        moved = true;
        canvas.classList.add("held");
        zoom.dx += dx;
        zoom.dy += dy;
        held = [event.clientX, event.clientY];
        return keep();
      });
      const release = () => { held = null; canvas.classList.remove("held"); };
      canvas.addEventListener("pointerup", release);
      canvas.addEventListener("pointercancel", release);
      canvas.addEventListener("pointerleave", () => { hideTip(); showNode(chosen); });
      canvas.addEventListener("click", (event) => {
        const i = moved ? -1 : nearest(...spot(event));
        if (i >= 0) { cursor = i; choose(rows[i]); }
      });
      canvas.addEventListener("wheel", (event) => {
        if (document.activeElement !== canvas && !event.ctrlKey) return; // the page scrolls
        event.preventDefault();
        zoomBy(Math.exp(-clamp(event.deltaY, -200, 200) / 300), ...spot(event));
      }, { passive: false });
    }

    function hover(event, i) {
      if (event.pointerType === "touch") return;
      if (i < 0) { hideTip(); showNode(chosen); return; }
      showTip(`${short(nodes.id[rows[i]], 80)}\n${inUnit(nodes.prediction[rows[i]])}, ${interval(rows[i])}`, event.clientX, event.clientY);
      showNode(rows[i]);
    }

    function startKeys() {
      const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
      canvas.addEventListener("keydown", (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey) return;
        if (ways[event.key]) {
          cursor = step(...ways[event.key]);
          showNode(rows[cursor]);
          say(describe(rows[cursor]));
          see(cursor);
        } else if ((event.key === "Enter" || event.key === " ") && cursor >= 0) choose(rows[cursor]);
        else if (event.key === "+" || event.key === "=") zoomBy(1.4, cursor < 0 ? undefined : x[cursor], cursor < 0 ? undefined : y[cursor]);
        else if (event.key === "-") zoomBy(1 / 1.4);
        else if (event.key === "0") zoomBy(0);
        else return;
        event.preventDefault();
      });
      canvas.addEventListener("blur", () => { cursor = -1; showNode(chosen); repaint(); });
    }

    function drawRamp() {
      const box = byId("ramp"), svg = picture(box, 232, 40), missing = finiteWidths.length < count;
      draw(svg, "text", { x: 0, y: 11 }, (content.side === "both" ? "interval width" : "from prediction to bound") + (missing ? " (open circle: no end)" : ""));
      for (let i = 0; i < 58; i++) draw(svg, "rect", { x: i * 4, y: 16, width: 4.2, height: 9, fill: rampColour(i / 57) });
      draw(svg, "text", { x: 0, y: 38 }, `${finiteWidths[0] < low ? "≤ " : ""}${inUnit(low)}`);
      draw(svg, "text", { x: 116, y: 38, "text-anchor": "middle" }, inUnit((low + high) / 2));
      draw(svg, "text", { x: 232, y: 38, "text-anchor": "end" }, `${finiteWidths.at(-1) > high ? "≥ " : ""}${inUnit(high)}`);
    }

    function start() {
      drawRamp();
      startPointer();
      startKeys();
      byId("mark").addEventListener("change", repaint);
      const factors = { in: 1.5, out: 1 / 1.5, fit: 0 };
      for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoomBy(factors[button.dataset.zoom]));
      resize();
      recolour();
    }

    const reveal = (row) => (at.has(row) ? see(at.get(row)) : repaint());
    return { start, resize, recolour, reveal };
  }

  // ---- one node -------------------------------------------------------------------------------

  function describe(row) {
    const target = Number.isNaN(nodes.target[row]) ? "" : `, true value ${inUnit(nodes.target[row])}, ${INSIDE[nodes.inside[row]]}`;
    return `${nodes.id[row]}, ${ROLES[nodes.role[row]]}: prediction ${inUnit(nodes.prediction[row])}, interval ${interval(row)}${target}`;
  }

  function toldOf(row) {
    const target = nodes.target[row], below = nodes.lower[row] - target, above = target - nodes.upper[row];
    if (nodes.inside[row] === 1) return "The true value lies inside the interval.";
    if (nodes.inside[row] === 2) return `Missed: the true value lies ${inUnit(Math.max(below, above))} ${below > 0 ? "below" : "above"} the interval.`;
    return "No true value is known for this node.";
  }

  function drawNode(box, row) {
    const w = Math.max(Math.min(box.clientWidth - 40, 420), 120), svg = draw(box, "svg", { width: w, height: 36, "aria-hidden": "true" });
    const { lower, upper, prediction, target } = nodes;
    const toX = scale(extent([lower[row], upper[row], prediction[row], target[row]], 0.06), [0, w]);
    const left = clamp(toX(lower[row]), 0, w), right = clamp(toX(upper[row]), 0, w);
    draw(svg, "path", { class: "axis", d: `M0 18H${w}` });
    draw(svg, "path", { class: "bar", d: `M${left} 18H${right}` }).style.strokeWidth = 16;
    if (Number.isFinite(prediction[row])) draw(svg, "path", { class: "tick", d: `M${toX(prediction[row])} 8v20` }).style.strokeWidth = 2.5;
    if (nodes.inside[row] === 1) draw(svg, "path", { class: "dot", d: `M${toX(target[row])} 18h0` }).style.strokeWidth = 9;
    if (nodes.inside[row] === 2) draw(svg, "path", { class: "cross", d: `M${toX(target[row]) - 5} 13l10 10m0-10l-10 10` }).style.strokeWidth = 2.5;
  }

  function showNode(row) {
    const box = byId("panel");
    if (box.dataset.row === String(row)) return;
    box.dataset.row = row;
    box.classList.toggle("filled", row >= 0);
    if (row < 0) return box.replaceChildren(element("p", { className: "muted", textContent: "No node chosen yet. Point at one in the graph, or choose one in the table." }));
    box.replaceChildren(element("h3", { textContent: nodes.id[row], title: nodes.id[row] }), element("p", { className: "muted", textContent: `${ROLES[nodes.role[row]]}, degree ${number(nodes.degree[row])}` }));
    drawNode(box, row);
    const facts = [["Prediction", inUnit(nodes.prediction[row])], ["Interval", interval(row)], [content.side === "both" ? "Width" : "To the bound", inUnit(nodes.width[row])], ["True value", inUnit(nodes.target[row])]];
    const list = facts.map(([name, value]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value })));
    const dismiss = element("button", { type: "button", className: "button dismiss", textContent: "Close" });
    dismiss.addEventListener("click", () => {
      (document.querySelector(`#rows tr[data-row="${row}"] button`) || byId("search")).focus({ preventScroll: true });
      choose(-1);
    });
    box.append(element("dl", {}, ...list), element("p", { className: "told", textContent: toldOf(row) }), dismiss);
    return undefined;
  }

  function choose(row, jump) {
    chosen = row;
    hideTip();
    showNode(row);
    table.mark();
    if (graph) graph.reveal(row);
    if (row >= 0) say(describe(row));
    if (jump) byId("nodes").scrollIntoView();
  }

  // ---- the table of nodes ---------------------------------------------------------------------

  function makeTable() {
    const search = byId("search"), role = byId("role"), body = byId("rows"), lowered = nodes.id.map((id) => id.toLowerCase());
    let order = Array.from(nodes.id, (_, i) => i), shown = order, page = 0, column = "", down = false, timer = 0;

    const KEYS = { id: () => idKeys(), role: () => nodes.role, inside: () => nodes.inside };
    const idKeys = () => (nodes.id.every((id) => id.trim() !== "" && Number.isFinite(Number(id))) ? nodes.id.map(Number) : lowered);

    function sort() {
      const keys = (KEYS[column] || (() => nodes[column]))(), sign = down ? -1 : 1;
      const unknown = (key) => key !== key || (column === "inside" && key === 0); // NaN: not known
      order = Array.from(nodes.id, (_, i) => i).sort((a, b) => {
        const p = keys[a], q = keys[b];
        if (unknown(p) || unknown(q)) return unknown(p) - unknown(q) || a - b;
        return p < q ? -sign : p > q ? sign : a - b;
      });
    }

    function filter() {
      const words = search.value.trim().toLowerCase(), wanted = role.value === "" ? -1 : Number(role.value);
      shown = order.filter((row) => (wanted < 0 || nodes.role[row] === wanted) && lowered[row].includes(words));
      page = 0;
      fill();
    }

    function line(row) {
      const button = element("button", { type: "button", textContent: nodes.id[row] || "(empty id)", title: nodes.id[row] });
      const cell = (name, text) => element("td", { className: name, textContent: text });
      const made = element("tr", {}, element("td", { className: "id" }, button), cell("role", ROLES[nodes.role[row]]));
      for (const name of ["prediction", "lower", "upper", "width", "target"]) made.append(cell(name, inUnit(nodes[name][row])));
      made.append(cell(nodes.inside[row] === 2 ? "inside missed" : "inside", ["–", "✓ inside", "× missed"][nodes.inside[row]]));
      made.dataset.row = row;
      return made;
    }

    function fill() {
      const pages = Math.max(1, Math.ceil(shown.length / ROWS_A_PAGE));
      page = clamp(page, 0, pages - 1);
      const first = page * ROWS_A_PAGE, rows = shown.slice(first, first + ROWS_A_PAGE);
      body.replaceChildren(...rows.map(line));
      byId("count").textContent = rows.length ? `${WHOLE.format(first + 1)}–${WHOLE.format(first + rows.length)} of ${WHOLE.format(shown.length)} nodes` : "No node matches.";
      for (const button of document.querySelectorAll("[data-page]")) {
        button.disabled = ["first", "back"].includes(button.dataset.page) ? page === 0 : page === pages - 1;
      }
      byId("download").disabled = !shown.length;
      mark();
    }

    function mark() {
      for (const row of body.children) {
        if (Number(row.dataset.row) === chosen) row.setAttribute("aria-current", "true");
        else row.removeAttribute("aria-current");
      }
    }

    function sortBy(button) {
      down = column === button.dataset.sort && !down;
      column = button.dataset.sort;
      for (const other of document.querySelectorAll("[data-sort]")) other.parentElement.setAttribute("aria-sort", other !== button ? "none" : down ? "descending" : "ascending");
      sort();
      filter();
    }

    function start() {
      search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(filter, 80); });
      role.addEventListener("change", filter);
      body.addEventListener("click", (event) => {
        const row = event.target.closest("tr");
        if (row) choose(Number(row.dataset.row));
      });
      for (const button of document.querySelectorAll("[data-sort]")) button.addEventListener("click", () => sortBy(button));
      const turns = { first: () => 0, back: () => page - 1, on: () => page + 1, last: () => Infinity };
      for (const button of document.querySelectorAll("[data-page]")) button.addEventListener("click", () => { page = turns[button.dataset.page](); fill(); });
      byId("download").addEventListener("click", () => save("nodes.csv", csv(shown)));
      fill();
    }

    return { start, mark };
  }

  // A cell of CSV: quoted where need be, and never a formula to the program that opens it.
  function cell(value) {
    const text = String(value);
    const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(text) && !(text.trim() !== "" && Number.isFinite(Number(text))) ? "'" + text : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  }

  function csv(rows) {
    const value = (number) => (Number.isNaN(number) ? "" : String(number).replace("Infinity", "inf"));
    const numbers = ["prediction", "lower", "upper", "width", "target"];
    const lines = rows.map((row) => [cell(nodes.id[row]), ROLES[nodes.role[row]], ...numbers.map((name) => value(nodes[name][row])), INSIDE[nodes.inside[row]]].join(","));
    return `\ufeff${["id", "role", ...numbers, "inside"].join(",")}\r\n${lines.join("\r\n")}\r\n`;
  }

  function save(name, text) {
    const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // ---- start ----------------------------------------------------------------------------------

  function columns(read) {
    const floats = (values, missing) => Float64Array.from(values, (value) => value ?? missing);
    const made = {
      id: read.id.map(String), role: read.role, degree: read.degree, prediction: floats(read.prediction, NaN),
      lower: floats(read.lower, -Infinity), upper: floats(read.upper, Infinity), target: floats(read.target, NaN),
      inside: read.inside,
    };
    // with one bound only, what counts as width is the way from the prediction to the bound
    const low = content.side === "upper" ? made.prediction : made.lower, high = content.side === "lower" ? made.prediction : made.upper;
    made.width = high.map((end, i) => end - low[i]);
    return made;
  }

  function startContents() {
    const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
    const update = () => {
      let current = null;
      for (const [id, link] of links) {
        if (!current || byId(id).getBoundingClientRect().top < innerHeight * 0.4) current = link;
        link.removeAttribute("aria-current");
      }
      if (current) current.setAttribute("aria-current", "true");
    };
    addEventListener("scroll", update, { passive: true });
    update();
  }

  function startPrint() { // what is folded away is printed too
    let folded = [];
    addEventListener("beforeprint", () => {
      folded = [...document.querySelectorAll("details:not([open])")];
      for (const details of folded) details.open = true;
    });
    addEventListener("afterprint", () => { for (const details of folded) details.open = false; });
  }

  function startResize() {
    let width = innerWidth;
    addEventListener("resize", () => {
      if (innerWidth === width) return; // only the height: a phone's address bar
      width = innerWidth;
      requestAnimationFrame(() => { hideTip(); drawCharts(); if (graph) graph.resize(); });
    });
  }

  function start() {
    content = JSON.parse(byId("content").textContent);
    nodes = columns(content.nodes || { id: [], role: [], degree: [], prediction: [], lower: [], upper: [], target: [], inside: [] });
    chooseDecimals();
    startTheme();
    startGroupings();
    drawCharts();
    startContents();
    startPrint();
    startResize();
    if (!byId("panel")) return;
    table = makeTable();
    graph = byId("graph") ? makeGraph() : null;
    showNode(-1);
    table.start();
    if (graph) graph.start();
  }

  root.classList.add("js");
  recallTheme();
  document.addEventListener("DOMContentLoaded", start);
})();
