// The parts of this script are concatenated in one scope (SCRIPTS in page.py). They draw charts,
// graph and table from the JSON in #content. Ids, names and columns come from users' files: they are
// inserted as text content only, never as HTML.

const root = document.documentElement;
const ROLES = ["given", "held out", "unlabelled", "not used"];
const byId = (id) => document.getElementById(id);
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);
let content, nodes, own, filter, graph, table;
let chosen = -1; // row of the selected node

// ---- light and dark -------------------------------------------------------------------------

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);

function rememberTheme(theme) {
  try {
    localStorage.setItem("qpignn-theme", theme);
  } catch { /* storage is not allowed: the choice lasts until the page is closed */ }
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
let unitDecimals = FOUR; // for values in the target's unit; the decimals depend on the widths

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

// ---- wording ----------------------------------------------------------------------------------

// Terms for two-sided intervals and for one-sided bounds.
const WORDING = {
  both: { inside: ["–", "✓ inside", "× missed"], saved: ["", "inside", "missed"], heading: "inside?", width: "width", fact: "Width" },
  upper: { bound: "upper bound", inside: ["–", "✓ below", "× above"], saved: ["", "below", "above"], heading: "below bound?", width: "to bound", fact: "To the bound" },
  lower: { bound: "lower bound", inside: ["–", "✓ above", "× below"], saved: ["", "above", "below"], heading: "above bound?", width: "to bound", fact: "To the bound" },
};
const wording = () => WORDING[content.side];
const twoSided = () => content.side === "both";
const boundOf = (row) => nodes[content.side][row]; // of a one-sided result

// A bound or width; nodes of a one-sided result may lack the bound.
const sized = (value) => (!twoSided() && Math.abs(value) === Infinity ? "none" : inUnit(value));

function rangeOf(lower, upper) {
  if (twoSided()) return `interval ${inUnit(lower)} to ${inUnit(upper)}`;
  return `${wording().bound} ${sized(content.side === "upper" ? upper : lower)}`;
}

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
const announce = (text) => { byId("status").textContent = text; };
