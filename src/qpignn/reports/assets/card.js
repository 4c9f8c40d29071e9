// ---- the card of one node -------------------------------------------------------------------

function describe(row) {
  const target = Number.isNaN(nodes.target[row]) ? "" : `, true value ${inUnit(nodes.target[row])}, ${wording().inside[nodes.inside[row]].slice(2)}`;
  return `${nodes.id[row]}, ${ROLES[nodes.role[row]]}: prediction ${inUnit(nodes.prediction[row])}, ${rangeOf(nodes.lower[row], nodes.upper[row])}${target}`;
}

function verdictOn(row) {
  const target = nodes.target[row], below = nodes.lower[row] - target, above = target - nodes.upper[row];
  const what = twoSided() ? "interval" : wording().bound, side = below > 0 ? "below" : "above";
  if (nodes.inside[row] === 2) return `Missed: the true value lies ${inUnit(Math.max(below, above))} ${side} the ${what}.`;
  if (nodes.inside[row] !== 1) return "No true value is known for this node.";
  if (twoSided()) return "The true value lies inside the interval.";
  return `The true value lies ${content.side === "upper" ? "below" : "above"} the ${what}.`;
}

function drawNode(box, row) {
  const w = Math.max(Math.min(box.clientWidth - 40, 420), 120), svg = draw(box, "svg", { width: w, height: 36, "aria-hidden": "true" });
  const { lower, upper, prediction, target } = nodes;
  const toX = scale(extent([lower[row], upper[row], prediction[row], target[row]], 0.06), [0, w]);
  const left = clamp(toX(lower[row]), 0, w), right = clamp(toX(upper[row]), 0, w);
  draw(svg, "path", { class: "axis", d: `M0 18H${w}` });
  draw(svg, "path", { class: twoSided() ? "bar" : "reach", d: `M${left} 18H${right}` }).style.strokeWidth = twoSided() ? 16 : 6;
  if (!twoSided() && Number.isFinite(boundOf(row))) draw(svg, "path", { class: "bound", d: `M${toX(boundOf(row))} 6v24` }).style.strokeWidth = 3;
  if (Number.isFinite(prediction[row])) draw(svg, "path", { class: "tick", d: `M${toX(prediction[row])} 8v20` }).style.strokeWidth = 2.5;
  if (nodes.inside[row] === 1) draw(svg, "path", { class: "dot", d: `M${toX(target[row])} 18h0` }).style.strokeWidth = 9;
  if (nodes.inside[row] === 2) draw(svg, "path", { class: "cross", d: `M${toX(target[row]) - 5} 13l10 10m0-10l-10 10` }).style.strokeWidth = 2.5;
}

function factsOf(row) {
  const range = twoSided()
    ? ["Interval", `${inUnit(nodes.lower[row])} to ${inUnit(nodes.upper[row])}`]
    : [wording().bound[0].toUpperCase() + wording().bound.slice(1), sized(boundOf(row))];
  return [["Prediction", inUnit(nodes.prediction[row])], range, [wording().fact, sized(nodes.width[row])], ["True value", inUnit(nodes.target[row])]];
}

function list(pairs, className) {
  const lines = pairs.map(([name, value]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: value })));
  return element("dl", { className }, ...lines);
}

function showNode(row) {
  const box = byId("panel");
  if (box.dataset.row === String(row)) return;
  box.dataset.row = row;
  box.classList.toggle("filled", row >= 0);
  if (row < 0) {
    box.replaceChildren(element("p", { className: "muted", textContent: "No node selected. Point at a node in the graph or select one in the table." }));
    return;
  }
  box.replaceChildren(element("h3", { textContent: nodes.id[row], title: nodes.id[row] }), element("p", { className: "muted", textContent: `${ROLES[nodes.role[row]]}, degree ${number(nodes.degree[row])}` }));
  drawNode(box, row);
  const dismiss = element("button", { type: "button", className: "button dismiss", textContent: "Close" });
  dismiss.addEventListener("click", () => {
    (document.querySelector(`#rows tr[data-row="${row}"] button`) || byId("search")).focus({ preventScroll: true });
    choose(-1);
  });
  box.append(list(factsOf(row), "facts"), element("p", { className: "outcome", textContent: verdictOn(row) }));
  if (own.length) box.append(list(own.map((column) => [column.name, column.text(row)]), "own"));
  box.append(dismiss);
  box.scrollTop = 0;
}

function choose(row, jump) {
  chosen = row;
  byId("explorer").classList.toggle("chosen", row >= 0); // the card then extends beside the table
  hideTip();
  showNode(row);
  table.mark();
  if (graph) graph.reveal(row);
  if (row >= 0) announce(describe(row));
  if (jump) byId("nodes").scrollIntoView();
}
