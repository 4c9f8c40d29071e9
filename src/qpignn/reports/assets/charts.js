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
  const margin = (high - low) * pad || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
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

// Pointer and arrow keys show a tooltip for each point; click or Enter selects it, if `choose` is given.
function explore(box, svg, points, { alongX = false, choose } = {}) {
  const ring = draw(svg, "circle", { class: "cursor", r: 8, visibility: "hidden" });
  let at = -1;
  const hide = () => { at = -1; ring.setAttribute("visibility", "hidden"); hideTip(); };
  const show = (i, announced) => {
    at = i;
    const { x, y, text } = points[i];
    for (const [key, value] of [["cx", x], ["cy", y], ["visibility", "visible"]]) ring.setAttribute(key, value);
    const corner = svg.getBoundingClientRect();
    showTip(text, corner.left + x, corner.top + y);
    if (announced) announce(text);
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
    const view = axes(box, { height: box.clientWidth < 500 ? 300 : 360, x: [-0.5, count - 0.5], y, yTitle: content.target, xTitle: "held-out nodes, in order of prediction", xText: null });
    const step = (view.plot.right - view.plot.left) / count;
    const half = clamp(step * 0.4, 0.8, 5);
    const paths = twoSided() ? { bar: "", tick: "", dot: "", cross: "" } : { reach: "", bound: "", tick: "", dot: "", cross: "" };
    const at = (value) => clamp(view.toY(value), view.plot.top, view.plot.bottom).toFixed(1);
    const dash = (x, value) => `M${(x - half).toFixed(1)} ${view.toY(value).toFixed(1)}h${(2 * half).toFixed(1)}`;
    const points = band.target.map((target, i) => {
      const x = view.toX(i), lower = band.lower[i] ?? -Infinity, upper = band.upper[i] ?? Infinity;
      const inside = band.inside[i], t = view.toY(target), bound = content.side === "upper" ? upper : lower;
      const line = `M${x.toFixed(1)} ${at(lower)}V${at(upper)}`;
      if (twoSided()) paths.bar += line;
      else if (Number.isFinite(bound)) { paths.reach += line; paths.bound += dash(x, bound); }
      paths.tick += dash(x, band.prediction[i]);
      if (inside) paths.dot += `M${x.toFixed(1)} ${t.toFixed(1)}h0`;
      else paths.cross += `M${(x - 3.5).toFixed(1)} ${(t - 3.5).toFixed(1)}l7 7m0-7l-7 7`;
      const row = band.node[i], verdict = wording().inside[inside ? 1 : 2].slice(2);
      const text = `${short(nodes.id[row] ?? "a node not listed", 80)}\n${content.target}: ${inUnit(target)} (${verdict})\nprediction: ${inUnit(band.prediction[i])}\n${rangeOf(lower, upper)}`;
      return { x, y: t, text, row };
    });
    for (const [name, d] of Object.entries(paths)) draw(view.svg, "path", { class: name, d });
    const thick = { bar: clamp(step * 0.72, 0.7, 14), reach: clamp(step * 0.2, 0.5, 2), dot: clamp(step * 1.05, 2.4, 7) };
    for (const name of Object.keys(thick)) if (name in paths) view.svg.querySelector("." + name).style.strokeWidth = thick[name];
    explore(box, view.svg, points, { alongX: true, choose: ({ row }) => { if (row in nodes.id) choose(row, true); } });
  },

  calibration(box) {
    const levels = content.calibration;
    const low = Math.min(...levels.flatMap((point) => [point.level, point.low ?? point.coverage]), 0.9);
    const domain = [Math.max(0, Math.floor(low * 10 - 0.2) / 10), 1];
    const view = axes(box, { height: clamp(box.clientWidth * 0.86, 280, 380), x: domain, y: domain, xText: share, yText: share, xTitle: "nominal coverage", yTitle: "observed coverage" });
    const { svg, toX, toY } = view;
    draw(svg, "path", { class: "nominal", d: `M${toX(domain[0])} ${toY(domain[0])}L${toX(1)} ${toY(1)}` });
    draw(svg, "path", { class: "curve", d: line(levels.map((point) => [toX(point.level), toY(point.coverage)])) });
    const points = levels.map((point) => {
      const x = toX(point.level), y = toY(point.coverage);
      errorBar(svg, "range", x, toY(point.low ?? point.coverage), x, toY(point.high ?? point.coverage));
      draw(svg, "circle", { class: "mark", cx: x, cy: y, r: Math.abs(point.level - content.level) < 1e-9 ? 6.5 : 4.5 });
      return { x, y, text: `nominal ${percent(point.level)}\nobserved ${percent(point.coverage)}\n95 % range ${percent(point.low)} to ${percent(point.high)}` };
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
    draw(svg, "path", { class: "nominal", d: `M${toX(expected)} 2V76` });
    explore(box, svg, points);
  },
};

function line(points) {
  const finite = points.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  return finite.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
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
  draw(svg, "path", { class: "nominal", d: `M${toX(content.level)} 0V${bottom}` });
  const points = rows.map((row, i) => {
    const y = 36 * i + 22, x = toX(row.coverage ?? domain[0]), kind = row.flagged ? "flagged " : "";
    draw(svg, "text", { class: "strong", x: left - 14, y: y + 4, "text-anchor": "end" }, short(row.label, (left - 14) / 6.6));
    errorBar(svg, kind + "range", toX(row.low ?? row.coverage), y, toX(row.high ?? row.coverage), y);
    if (row.flagged) {
      draw(svg, "path", { class: "flagged mark", d: `M${x} ${y - 8}l8 8l-8 8l-8-8z` });
      draw(svg, "text", { class: "word", x: w, y: y + 4, "text-anchor": "end" }, "low");
    } else draw(svg, "circle", { class: "mark", cx: x, cy: y, r: 5.5 });
    return { x, y, text: `${short(row.label, 80)}${row.flagged ? " (low)" : ""}\ncoverage ${percent(row.coverage)}\n95 % range ${percent(row.low)} to ${percent(row.high)}\n${WHOLE.format(row.nodes)} nodes, mean ${twoSided() ? "width" : wording().bound} ${number(row.size)}` };
  });
  explore(box, svg, points);
}

function drawTraining(box, name) {
  const { training } = content, shares = name === "coverage";
  const pairs = name === "held_out" ? training.held_out : training[name].map((value, epoch) => [epoch, value]);
  const y = extent([...pairs.map((pair) => pair[1]), ...(shares ? [training.level] : [])], 0.06);
  const { svg, toX, toY, plot } = axes(box, { height: 210, x: [0, Math.max(training.loss.length - 1, 1)], y: shares ? [Math.max(0, y[0]), Math.min(1, y[1])] : y, yText: shares ? share : tickText, xTitle: "epoch", whole: true });
  if (shares) draw(svg, "path", { class: "grid axis", d: `M${plot.left} ${toY(training.level)}H${plot.right}` });
  if (training.best_epoch >= 0) draw(svg, "path", { class: "nominal", d: `M${toX(training.best_epoch)} ${plot.top}V${plot.bottom}` });
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
