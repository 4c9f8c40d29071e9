// ---- the table of nodes ---------------------------------------------------------------------

const ROWS_PER_PAGE = 15;
const OWN_SHOWN = 3; // of the user's columns, until others are selected

// The columns: `text` for a cell, `saved` for a CSV file, `keys` to sort by (NaN: unknown).
function tableColumns() {
  const inNumbers = (name, title) => ({
    name, title, className: name, shown: true, keys: () => nodes[name],
    text: (row) => sized(nodes[name][row]),
    saved: (row) => (Number.isNaN(nodes[name][row]) ? "" : String(nodes[name][row]).replace("Infinity", "inf")),
  });
  const bounds = twoSided() ? [inNumbers("lower", "lower"), inNumbers("upper", "upper")] : [inNumbers(content.side, wording().bound)];
  const first = new Set(own.filter((column) => column.shown).slice(0, OWN_SHOWN));
  const isNumber = (id) => id.trim() !== "" && Number.isFinite(Number(id));
  return [
    { name: "id", title: "node", className: "id", shown: true, text: (row) => nodes.id[row], saved: (row) => nodes.id[row], keys: () => (nodes.id.every(isNumber) ? nodes.id.map(Number) : nodes.id.map((id) => id.toLowerCase())) },
    { name: "role", title: "role", className: "role", shown: true, text: (row) => ROLES[nodes.role[row]], saved: (row) => ROLES[nodes.role[row]], keys: () => nodes.role },
    inNumbers("prediction", "prediction"), ...bounds, inNumbers("width", wording().width), inNumbers("target", "true value"),
    { name: "inside", title: wording().heading, className: "inside", shown: true, text: (row) => wording().inside[nodes.inside[row]], saved: (row) => wording().saved[nodes.inside[row]], keys: () => nodes.inside.map((inside) => inside || NaN) },
    ...own.map((column, i) => ({
      name: `own-${i}`, title: column.name, className: `own ${column.kind}`, shown: first.has(column), own: true,
      text: column.text, saved: column.saved, keys: column.keys,
    })),
  ];
}

function makeTable() {
  const body = byId("rows"), head = byId("head"), every = tableColumns();
  let order = Array.from(nodes.id, (_, i) => i), shown = order, page = 0, by = null, down = false;
  const visible = () => every.filter((column) => column.shown);

  function sort() {
    const keys = by.keys(), sign = down ? -1 : 1, unknown = (key) => key !== key;
    order = Array.from(nodes.id, (_, i) => i).sort((a, b) => {
      const p = keys[a], q = keys[b];
      if (unknown(p) || unknown(q)) return unknown(p) - unknown(q) || a - b;
      return p < q ? -sign : p > q ? sign : a - b;
    });
  }

  function update() {
    shown = order.filter(filter.keeps);
    page = 0;
    fill();
  }

  function fillHead() {
    const cells = visible().map((column) => {
      const button = element("button", { type: "button", textContent: column.title, title: column.title });
      button.dataset.sort = column.name;
      button.addEventListener("click", () => sortBy(column));
      const cell = element("th", { className: column.className, scope: "col" }, button);
      cell.setAttribute("aria-sort", column !== by ? "none" : down ? "descending" : "ascending");
      return cell;
    });
    head.replaceChildren(...cells);
  }

  function line(row) {
    const made = element("tr", {}), missed = nodes.inside[row] === 2;
    made.dataset.row = row;
    for (const column of visible()) {
      const text = column.text(row);
      if (column.name === "id") made.append(element("td", { className: "id" }, element("button", { type: "button", textContent: text || "(empty id)", title: text })));
      else made.append(element("td", { className: column.className + (column.name === "inside" && missed ? " missed" : ""), textContent: text, title: column.own ? text : "" }));
    }
    return made;
  }

  function fill() {
    const pages = Math.max(1, Math.ceil(shown.length / ROWS_PER_PAGE));
    page = clamp(page, 0, pages - 1);
    const first = page * ROWS_PER_PAGE, rows = shown.slice(first, first + ROWS_PER_PAGE);
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

  function sortBy(column) {
    down = by === column && !down;
    by = column;
    sort();
    fillHead();
    head.querySelector(`[data-sort="${column.name}"]`).focus();
    update();
  }

  // Selection of the columns: a checkbox for each except the id.
  function startChooser() {
    const title = byId("chooser").querySelector("summary");
    const count = () => { title.textContent = `Columns (${visible().length} of ${every.length})`; };
    for (const column of every.slice(1)) {
      const box = element("input", { type: "checkbox", checked: column.shown });
      box.dataset.column = column.name;
      box.addEventListener("change", () => { column.shown = box.checked; count(); fillHead(); fill(); });
      byId("columns").append(element("label", { className: "check" }, box, element("span", { textContent: column.title })));
    }
    byId("chooser").addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      byId("chooser").open = false;
      title.focus();
    });
    document.addEventListener("click", (event) => { if (!byId("chooser").contains(event.target)) byId("chooser").open = false; });
    count();
  }

  function start() {
    filter.onChange(update);
    startChooser();
    fillHead();
    body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) choose(Number(row.dataset.row));
    });
    const turns = { first: () => 0, back: () => page - 1, on: () => page + 1, last: () => Infinity };
    for (const button of document.querySelectorAll("[data-page]")) button.addEventListener("click", () => { page = turns[button.dataset.page](); fill(); });
    byId("download").addEventListener("click", () => save("nodes.csv", csv(visible(), shown)));
  }

  return { start, mark };
}

// ---- saving ---------------------------------------------------------------------------------

// A CSV cell: quoted if a program could split it (also at ; or tab, the delimiters in some locales),
// and never a formula for the program that opens it (see csv_output.py).
function cell(value) {
  const text = String(value);
  const breaks = /^[\t\r\n]/.test(text);
  const isNumber = !breaks && (text === "-inf" || (text.trim() !== "" && Number.isFinite(Number(text))));
  const formula = breaks || /^[\s\0\u200b\ufeff]*[=+\-@＝＋－＠]/.test(text);
  const safe = formula && !isNumber ? "'" + text : text;
  return /[",;|\t\r\n\u2028\u2029]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// The columns and rows shown; columns of the user's with a name of ours are marked.
function csv(columns, rows) {
  const ours = new Set(columns.filter((column) => !column.own).map((column) => column.name));
  const names = columns.map((column) => (!column.own ? column.name : ours.has(column.title) ? `${column.title} (table)` : column.title));
  const lines = rows.map((row) => columns.map((column) => cell(column.saved(row))).join(","));
  return `\ufeff${names.map(cell).join(",")}\r\n${lines.join("\r\n")}\r\n`;
}

function save(name, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
