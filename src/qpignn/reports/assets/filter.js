// ---- which nodes are shown ------------------------------------------------------------------

// One filter for graph and table: search text, role, and side of a threshold.
function makeFilter() {
  const search = byId("search"), where = byId("where"), role = byId("role"), threshold = byId("threshold");
  const radios = [...document.querySelectorAll('input[name="threshold"]')];
  const lowered = nodes.id.map((id) => id.toLowerCase());
  const keep = new Uint8Array(nodes.id.length).fill(1);
  const listeners = [];
  let timer = 0;

  // Rows whose id, or one of whose texts if these are searched too, contains the search text.
  function matcher(text) {
    if (!text) return () => true;
    if (!where || where.value === "id") return (row) => lowered[row].includes(text);
    const wanted = own.filter((column) => column.kind === "text").map(({ codes, lowered: texts }) => {
      const matching = texts.map((category) => category.includes(text));
      return (row) => codes[row] >= 0 && matching[codes[row]];
    });
    return (row) => lowered[row].includes(text) || wanted.some((matches) => matches(row));
  }

  function sideOf(row, x) {
    return nodes.lower[row] > x ? "above" : nodes.upper[row] < x ? "below" : "either";
  }

  function apply() {
    const matches = matcher(search.value.trim().toLowerCase());
    const wanted = role.value === "" ? -1 : Number(role.value);
    const x = threshold.value.trim() === "" ? NaN : Number(threshold.value), active = Number.isFinite(x);
    const choice = active ? radios.find((radio) => radio.checked).value : "all";
    const counts = { all: 0, above: 0, below: 0, either: 0 };
    for (let row = 0; row < keep.length; row++) {
      const passes = (wanted < 0 || nodes.role[row] === wanted) && matches(row);
      const side = passes && active ? sideOf(row, x) : "";
      if (passes) counts.all++;
      if (side) counts[side]++;
      keep[row] = passes && (choice === "all" || choice === side) ? 1 : 0;
    }
    for (const output of document.querySelectorAll("[data-count]")) output.textContent = active ? WHOLE.format(counts[output.dataset.count]) : "";
    byId("choices").disabled = !active;
    byId("threshold-help").hidden = !active;
    for (const listener of listeners) listener();
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(apply, 80);
  }

  function start() {
    search.addEventListener("input", soon);
    threshold.addEventListener("input", soon);
    for (const select of [role, where]) if (select) select.addEventListener("change", apply);
    for (const radio of radios) radio.addEventListener("change", apply);
    apply();
  }

  return { start, keeps: (row) => keep[row] === 1, onChange: (listener) => listeners.push(listener) };
}
