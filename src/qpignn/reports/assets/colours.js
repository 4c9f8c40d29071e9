// ---- node colours ----------------------------------------------------------------------

const VIRIDIS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"];
// Diverging: blue, near the background colour, orange.
const BLUE_TO_ORANGE = {
  light: ["08306b", "2b6cb0", "7fb2d9", "cfe1ef", "f7f7f7", "fbd9b5", "f0a35e", "c8641c", "7f3b08"],
  dark: ["a6d3ff", "6ba8dc", "3f7aaf", "345067", "39424d", "6b4a2e", "a5672f", "dc8a3c", "ffb877"],
};

function mixed(palette, share) {
  const at = clamp(share, 0, 1) * (palette.length - 1), i = Math.min(Math.floor(at), palette.length - 2);
  const part = (hex, k) => parseInt(hex.slice(2 * k, 2 * k + 2), 16);
  const mix = (k) => Math.round(part(palette[i], k) + (at - i) * (part(palette[i + 1], k) - part(palette[i], k)));
  return `rgb(${mix(0)} ${mix(1)} ${mix(2)})`;
}

// A colour scale of the drawn rows: `shade` returns a colour, or null without a value. It ends at the
// 2 % and 98 % quantiles, so that a few extreme nodes do not use up the colours.
function colouring(rows, values, { palette = VIRIDIS, diverging = false, about, without, note = "" }) {
  const finite = sorted(rows.map((row) => values[row])).filter(Number.isFinite);
  const quantile = (share) => finite[Math.round(share * (finite.length - 1))] ?? 0;
  let [low, high] = [quantile(0.02), quantile(0.98)];
  if (diverging) {
    high = Math.max(Math.abs(low), Math.abs(high));
    low = -high;
  }
  const shades = Array.from({ length: 65 }, (_, i) => mixed(palette, i / 64));
  const same = inUnit(low) === inUnit(high); // equal labels get equal colours
  const share = (value) => (same ? 0.5 : (value - low) / (high - low));
  const shade = (row) => (Number.isFinite(values[row]) ? shades[Math.round(64 * clamp(share(values[row]), 0, 1))] : null);

  function legend(box) {
    const svg = picture(box, 300, 40), missing = finite.length < rows.length ? ` (${without})` : "";
    draw(svg, "text", { x: 0, y: 11 }, about + missing);
    for (let i = 0; i < 60; i++) draw(svg, "rect", { x: i * 5, y: 16, width: 5.2, height: 9, fill: same ? shades[32] : mixed(palette, i / 59) });
    byId("colour-note").textContent = note;
    if (same) {
      draw(svg, "text", { x: 0, y: 38 }, `${inUnit(low)} everywhere`);
      return;
    }
    draw(svg, "text", { x: 0, y: 38 }, `${finite[0] < low ? "≤ " : ""}${inUnit(low)}`);
    draw(svg, "text", { x: 150, y: 38, "text-anchor": "middle" }, inUnit((low + high) / 2));
    draw(svg, "text", { x: 300, y: 38, "text-anchor": "end" }, `${finite.at(-1) > high ? "≥ " : ""}${inUnit(high)}`);
  }

  return { shade, legend, without, values };
}

function colourings(rows) {
  const error = nodes.target.map((target, row) => target - nodes.prediction[row]);
  return {
    width: colouring(rows, nodes.width, {
      about: twoSided() ? "width of the interval" : `distance from prediction to ${wording().bound}`,
      without: twoSided() ? "open circle: infinite" : "open circle: no bound",
    }),
    prediction: colouring(rows, nodes.prediction, { about: `prediction of ${short(content.target, 28)}`, without: "" }),
    error: colouring(rows, error, {
      palette: BLUE_TO_ORANGE[isDark() && !matchMedia("print").matches ? "dark" : "light"],
      diverging: true,
      about: "true value − prediction",
      without: "grey: no true value",
      note: "Orange: the true value is higher than predicted; blue: lower. Given nodes were used for training, so their errors tend to be smaller than those of held-out nodes.",
    }),
  };
}
