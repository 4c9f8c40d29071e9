// ---- start ----------------------------------------------------------------------------------

// Columns of the user's table: text columns as categories and codes, with ranks to sort by.
function ownColumns(read) {
  const collator = new Intl.Collator("en", { numeric: true });
  return read.map(({ name, kind, shown, values, categories: texts, codes }) => {
    if (kind === "number") {
      const saved = (row) => (values[row] === null ? "" : String(values[row]));
      const brief = (value) => String(Number.isInteger(value) ? value : Number(Math.abs(value) < 1e4 ? value.toPrecision(6) : value.toFixed(2)));
      return { name, kind, shown, saved, text: (row) => (values[row] === null ? "–" : proper(brief(values[row]))), keys: () => Float64Array.from(values, (value) => value ?? NaN) };
    }
    const keys = () => {
      const ranks = new Float64Array(texts.length);
      Array.from(texts, (_, i) => i).sort((a, b) => collator.compare(texts[a], texts[b])).forEach((category, rank) => { ranks[category] = rank; });
      return Float64Array.from(codes, (code) => (code < 0 ? NaN : ranks[code]));
    };
    return {
      name, kind, shown, codes, lowered: texts.map((text) => text.toLowerCase()),
      saved: (row) => texts[codes[row]] ?? "", text: (row) => texts[codes[row]] ?? "–", keys,
    };
  });
}

function nodeColumns(read) {
  const floats = (values, missing) => Float64Array.from(values, (value) => value ?? missing);
  const made = {
    id: read.id.map(String), role: read.role, degree: read.degree, prediction: floats(read.prediction, NaN),
    lower: floats(read.lower, -Infinity), upper: floats(read.upper, Infinity), target: floats(read.target, NaN),
    inside: read.inside,
  };
  // of a one-sided result, the width is the distance from prediction to bound
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

function startPrint() { // collapsed parts are printed too
  let collapsed = [];
  addEventListener("beforeprint", () => {
    collapsed = [...document.querySelectorAll("details:not([open], .chooser)")];
    for (const details of collapsed) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of collapsed) details.open = false; });
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
  own = ownColumns(content.columns.list);
  nodes = nodeColumns(content.nodes || { id: [], role: [], degree: [], prediction: [], lower: [], upper: [], target: [], inside: [] });
  chooseDecimals();
  startTheme();
  startGroupings();
  drawCharts();
  startContents();
  startPrint();
  startResize();
  if (!byId("panel")) return;
  filter = makeFilter();
  table = makeTable();
  graph = byId("graph") ? makeGraph() : null;
  showNode(-1);
  table.start();
  if (graph) graph.start();
  filter.start();
}

root.classList.add("js");
recallTheme();
document.addEventListener("DOMContentLoaded", start);
