// ---- axes of a map --------------------------------------------------------------------------

const KM_PER_DEGREE = 111.195; // of latitude, on a sphere of the earth's mean radius

// Axes of a map: coordinates at its edges at any zoom, and a scale bar.
function makeMapAxes(axes) {
  const longest = Math.max(...axes.y.map((end) => label(end, ticks(axes.y, 20), "NS").length));
  const margin = { left: 18 + 6.8 * longest, right: 3.6 * longest, top: 12, bottom: 26 };

  function degrees(value, all, letters) {
    const turned = letters === "EW" ? ((((value + 180) % 360) + 360) % 360) - 180 : value;
    const size = Math.abs(turned) < 1e-9 ? 0 : turned;
    return `${whole(Math.abs(size), all)}°${size ? "\u00a0" + letters[size > 0 ? 0 : 1] : ""}`;
  }

  function label(value, all, letters) {
    return axes.degrees ? degrees(value, all, letters) : proper(whole(value, all));
  }

  // All digits of a coordinate, with as many decimals as tell ticks apart.
  function whole(value, all) {
    const step = Math.abs(all[1] - all[0]) || 1, places = clamp(-Math.floor(Math.log10(step) + 1e-9), 0, 12);
    return digits({ minimumFractionDigits: places, maximumFractionDigits: places }).format(value);
  }

  function lengthText(length) {
    if (!axes.degrees) return `${number(length)} ${length === 1 ? "unit" : "units"}`;
    return length < 1 ? `${number(1000 * length)}\u00a0m` : `${number(length)}\u00a0km`;
  }

  // `toX` and `toY` turn shares of the map's width and height into pixels.
  function paint(pen, frame, toX, toY, colours) {
    const xAt = scale(axes.x, [toX(0), toX(1)]), yAt = scale(axes.y, [toY(1), toY(0)]);
    const ends = (from, [low, high], edges) => edges.map((edge) => scale(from, [low, high])(edge));
    const xSeen = ends([toX(0), toX(1)], axes.x, [frame.left, frame.right]);
    const ySeen = ends([toY(1), toY(0)], axes.y, [frame.bottom, frame.top]);
    pen.font = "12px " + getComputedStyle(document.body).fontFamily;
    pen.strokeStyle = colours.line;
    pen.fillStyle = colours.muted;
    pen.lineWidth = 1;
    pen.strokeRect(frame.left, frame.top, frame.right - frame.left, frame.bottom - frame.top);
    pen.beginPath();
    const xTicks = ticks(xSeen, (frame.right - frame.left) / (12 + 6.8 * longest)), yTicks = ticks(ySeen, (frame.bottom - frame.top) / 60);
    pen.textAlign = "center";
    pen.textBaseline = "top";
    for (const value of xTicks) {
      const x = xAt(value);
      pen.moveTo(x, frame.bottom);
      pen.lineTo(x, frame.bottom + 4);
      pen.fillText(label(value, xTicks, "EW"), x, frame.bottom + 7);
    }
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const value of yTicks) {
      const y = yAt(value);
      pen.moveTo(frame.left - 4, y);
      pen.lineTo(frame.left, y);
      pen.fillText(label(value, yTicks, "NS"), frame.left - 7, y);
    }
    pen.stroke();
    if (!axes.degrees) names(pen, frame, colours);
    scaleBar(pen, frame, Math.abs(yAt(axes.y[0] + 1) - yAt(axes.y[0])), colours);
  }

  function names(pen, frame, colours) {
    const [x, y] = axes.names;
    plate(pen, short(x, 24), frame.right - 6, frame.bottom - 14, "right", colours);
    plate(pen, short(y, 24), frame.left + 6, frame.top + 14, "left", colours);
  }

  // Text with a background, readable over nodes and edges.
  function plate(pen, text, x, y, align, colours) {
    pen.textAlign = align;
    pen.textBaseline = "middle";
    const wide = pen.measureText(text).width;
    pen.globalAlpha = 0.85;
    pen.fillStyle = colours.card;
    pen.fillRect(align === "right" ? x - wide - 4 : x - 4, y - 9, wide + 8, 18);
    pen.globalAlpha = 1;
    pen.fillStyle = colours.ink;
    pen.fillText(text, x, y);
  }

  // `unit` is the length of one unit of the second coordinate in pixels; lengths are exact along
  // meridians, and along the parallel at the map's mean latitude.
  function scaleBar(pen, frame, unit, colours) {
    const perPixel = (axes.degrees ? KM_PER_DEGREE : 1) / unit, most = 0.3 * (frame.right - frame.left) * perPixel;
    if (!(most > 0) || !Number.isFinite(most)) return;
    const power = 10 ** Math.floor(Math.log10(most));
    const length = power * [5, 2, 1].find((times) => times * power <= most * 1.0001);
    const wide = length / perPixel, x = frame.left + 14, y = frame.bottom - 14;
    const spread = axes.degrees ? Math.cos((Math.PI / 180) * axes.y[0]) / Math.cos((Math.PI / 180) * axes.y[1]) : 1;
    const where = spread > 1.05 || spread < 0.95 ? ` at ${degrees(Math.round(axes.latitude), [0, 1], "NS")}` : "";
    plate(pen, lengthText(length) + where, x, y - 14, "left", colours);
    pen.strokeStyle = colours.ink;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x, y - 4);
    pen.lineTo(x, y + 3);
    pen.lineTo(x + wide, y + 3);
    pen.lineTo(x + wide, y - 4);
    pen.stroke();
  }

  return { margin, paint };
}
