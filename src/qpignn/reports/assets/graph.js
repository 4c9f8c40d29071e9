// ---- the graph ------------------------------------------------------------------------------

function makeGraph() {
  const canvas = byId("graph"), pen = canvas.getContext("2d"), drawn = content.graph;
  const rows = drawn.node, count = rows.length, at = new Map(rows.map((row, i) => [row, i]));
  const x = new Float64Array(count), y = new Float64Array(count); // where nodes are on the canvas
  const axes = drawn.axes ? makeMapAxes(drawn.axes) : null;
  const margin = axes ? axes.margin : { left: 18, right: 18, top: 18, bottom: 18 };
  const padding = axes ? 14 : 0; // between the frame of a map and its outermost nodes
  const zoom = { by: 1, dx: 0, dy: 0 };
  let size = { w: 0, h: 0 }, colours = {}, radius = 4, cursor = -1, waiting = false, schemes, scheme;
  let frame, toX, toY; // the plot's edges; from shares of its width and height to pixels

  const kept = (i) => filter.keeps(rows[i]);
  const missed = (row) => nodes.role[row] === 1 && nodes.inside[row] === 2;

  function place() {
    const aspect = drawn.aspect > 0 ? drawn.aspect : 1;
    frame = { left: margin.left, right: size.w - margin.right, top: margin.top, bottom: size.h - margin.bottom };
    const wide = frame.right - frame.left - 2 * padding, high = frame.bottom - frame.top - 2 * padding;
    const w = Math.min(wide, high * aspect), h = w / aspect, [mx, my] = middle();
    toX = (share) => mx + (share - 0.5) * w * zoom.by + zoom.dx;
    toY = (share) => my + (share - 0.5) * h * zoom.by + zoom.dy;
    for (let i = 0; i < count; i++) {
      x[i] = toX(drawn.x[i]);
      y[i] = toY(drawn.y[i]);
    }
    radius = clamp(0.26 * Math.sqrt((w * h) / count), 1.8, 6.5) * Math.min(Math.sqrt(zoom.by), 2.5);
  }

  const middle = () => [(frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2];

  function paintEdges() {
    const edges = drawn.edges, current = at.get(chosen) ?? -1;
    const stroke = (near) => {
      pen.beginPath();
      for (let k = 0; k + 1 < edges.length; k += 2) {
        const a = edges[k], b = edges[k + 1];
        if (near && a !== current && b !== current) continue;
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
    const marks = byId("mark").checked, grey = scheme === schemes.error;
    pen.fillStyle = colours.edge; // nodes that the filter excludes: small and faint
    pen.globalAlpha = 0.3;
    pen.beginPath();
    for (let i = 0; i < count; i++) {
      if (kept(i)) continue;
      pen.moveTo(x[i], y[i]);
      pen.arc(x[i], y[i], Math.max(1.2, 0.4 * radius), 0, 2 * Math.PI);
    }
    pen.fill();
    pen.globalAlpha = 1;
    const paintNode = (i, colour) => {
      const open = colour === null && !grey;
      pen.beginPath();
      pen.arc(x[i], y[i], colour === null && grey ? 0.7 * radius : radius, 0, 2 * Math.PI);
      pen.fillStyle = open ? colours.card : colour ?? colours.unknown;
      pen.fill();
      pen.lineWidth = open ? 1.6 : 0.7;
      pen.strokeStyle = open ? colours.ink : colours.edge;
      pen.stroke();
    };
    const shades = rows.map((row) => scheme.shade(row));
    for (let i = 0; i < count; i++) if (kept(i) && shades[i] === null) paintNode(i, null);
    for (let i = 0; i < count; i++) if (kept(i) && shades[i] !== null) paintNode(i, shades[i]);
    pen.lineWidth = 1.8;
    pen.strokeStyle = colours.cross;
    pen.beginPath();
    for (let i = 0; i < count && marks; i++) {
      if (!kept(i) || !missed(rows[i])) continue;
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
    pen.save();
    if (axes) {
      pen.beginPath();
      pen.rect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
      pen.clip();
    }
    paintEdges();
    paintNodes();
    ring(at.get(chosen), false);
    if (cursor !== at.get(chosen)) ring(cursor, true);
    pen.restore();
    if (axes) axes.paint(pen, frame, toX, toY, colours);
    canvas.classList.toggle("zoomed", zoom.by > 1.001);
  }

  function repaint() {
    if (!waiting) requestAnimationFrame(paint);
    waiting = true;
  }

  function resize() {
    const w = canvas.clientWidth, h = clamp(w / (drawn.aspect || 1), 240, axes ? 560 : 520), ratio = devicePixelRatio || 1;
    if (w === size.w && h === size.h && canvas.width === Math.round(w * ratio)) return;
    size = { w, h };
    canvas.style.height = h + "px";
    canvas.width = Math.round(w * ratio);
    canvas.height = Math.round(h * ratio);
    paint();
  }

  function readColours() {
    const style = getComputedStyle(root);
    for (const name of ["edge", "ink", "card", "cross", "muted", "line", "unknown"]) colours[name] = style.getPropertyValue("--" + name).trim();
    schemes = colourings(rows);
    colourBy(byId("colour").value);
  }

  function recolour() {
    readColours();
    paint();
  }

  function zoomBy(factor, px = middle()[0], py = middle()[1]) {
    const by = clamp(zoom.by * factor, 1, 40), real = by / zoom.by, [mx, my] = middle();
    zoom.dx = (zoom.dx - (px - mx)) * real + (px - mx);
    zoom.dy = (zoom.dy - (py - my)) * real + (py - my);
    zoom.by = by;
    keep();
  }

  function keep() { // part of the graph stays visible
    const limitX = (zoom.by * size.w) / 2 - 20, limitY = (zoom.by * size.h) / 2 - 20;
    zoom.dx = zoom.by === 1 ? 0 : clamp(zoom.dx, -limitX, limitX);
    zoom.dy = zoom.by === 1 ? 0 : clamp(zoom.dy, -limitY, limitY);
    repaint();
  }

  function nearest(px, py, within = Math.max(radius + 8, 14)) {
    let best = -1, least = within ** 2;
    for (let i = 0; i < count; i++) {
      const far = (x[i] - px) ** 2 + (y[i] - py) ** 2;
      if (far < least && kept(i)) [best, least] = [i, far];
    }
    return best;
  }

  function step(ux, uy) { // the nearest node that lies more in this direction than beside it
    if (cursor < 0) return at.get(chosen) ?? nearest(...middle(), Infinity);
    let best = cursor, least = Infinity;
    for (let i = 0; i < count; i++) {
      const along = (x[i] - x[cursor]) * ux + (y[i] - y[cursor]) * uy;
      const beside = Math.abs((x[i] - x[cursor]) * uy) + Math.abs((y[i] - y[cursor]) * ux);
      const far = along + 2 * beside;
      if (along > 1e-9 && beside <= along && far < least && kept(i)) [best, least] = [i, far];
    }
    return best;
  }

  function see(i) { // pan until the node is visible
    place();
    const [mx, my] = middle();
    if (x[i] < frame.left + 6 || x[i] > frame.right - 6) zoom.dx += mx - x[i];
    if (y[i] < frame.top + 6 || y[i] > frame.bottom - 6) zoom.dy += my - y[i];
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
    showTip(`${short(nodes.id[rows[i]], 80)}\nprediction ${inUnit(nodes.prediction[rows[i]])}\n${rangeOf(nodes.lower[rows[i]], nodes.upper[rows[i]])}`, event.clientX, event.clientY);
    showNode(rows[i]);
  }

  function startKeys() {
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    canvas.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (ways[event.key]) {
        const next = step(...ways[event.key]);
        if (next < 0) return; // the filter excludes all nodes
        cursor = next;
        showNode(rows[cursor]);
        announce(describe(rows[cursor]));
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

  function colourBy(name) {
    scheme = schemes[name];
    const missing = rows.some((row) => scheme.shade(row) === null), about = byId("colour").selectedOptions[0].textContent;
    scheme.legend(byId("ramp"));
    byId("ramp").setAttribute("aria-label", `Colours show ${about}${missing ? `, ${scheme.without}` : ""}`);
    repaint();
  }

  function start() {
    startPointer();
    startKeys();
    byId("colour").addEventListener("change", (event) => colourBy(event.target.value));
    filter.onChange(() => { if (cursor >= 0 && !kept(cursor)) cursor = -1; repaint(); });
    byId("mark").addEventListener("change", repaint);
    const factors = { in: 1.5, out: 1 / 1.5, fit: 0 };
    for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => zoomBy(factors[button.dataset.zoom]));
    readColours();
    resize();
  }

  const reveal = (row) => (at.has(row) ? see(at.get(row)) : repaint());
  return { start, resize, recolour, reveal };
}
