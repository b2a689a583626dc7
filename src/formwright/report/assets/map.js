// The map of the space: trials in the colour of their score, the path of the search through them, and other designs.
const SPOTS = new Map((DATA.map?.spots ?? []).map(([number, x, y]) => [ROW_OF.get(number), [x, y]]));
const PARTS = 12; // of the path, each a little stronger than the one before

function mapX(row) {
  return SPOTS.get(row)?.[0] ?? null;
}

function mapY(row) {
  return SPOTS.get(row)?.[1] ?? null;
}

// Better is darker on paper and brighter on a dark page. Nearly Viridis, which colour-blind people can read as well.
function scoreScale() {
  const shades = ["#553a8c", "#414487", "#2a788e", "#22a884", "#7ad151", "#f0e051"];
  const dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  if (dark !== (GOALS.get(SCORE) === "max")) shades.reverse();
  return shades.map((shade, place) => [place / (shades.length - 1), shade]);
}

// The worst scores are those of designs that did not learn at all; they must not take the colours from all others.
function scoreRange(rows) {
  const scores = rows.map((row) => value(row, SCORE)).sort((a, b) => a - b);
  const cut = Math.floor(scores.length / 10);
  return GOALS.get(SCORE) === "max" ? [scores[cut], scores[scores.length - 1]] : [scores[0], scores[scores.length - 1 - cut]];
}

function scored(rows) {
  const [cmin, cmax] = scoreRange(rows);
  const bar = { title: { text: label(SCORE), side: "right" }, thickness: 10, len: 0.9, outlinewidth: 0, tickformat: ".3~g", xpad: 6 };
  const below = { orientation: "h", y: 0, yanchor: "top", title: { text: label(SCORE), side: "bottom" } };
  return {
    size: rows.length > 500 ? 6 : 10,
    color: rows.map((row) => value(row, SCORE)),
    colorscale: scoreScale(),
    cmin,
    cmax,
    colorbar: COARSE ? { ...bar, ...below } : bar,
    line: { width: rows.length > 500 ? 0.5 : 1, color: colour("sheet") },
  };
}

// The rows that the path goes through: all of them, or those that were the best when they came.
function stations(rows, path) {
  if (path === "all") return rows;
  const better = DATA.progress.number.filter(([, best], place, all) => place === 0 || best !== all[place - 1][1]);
  return better.map(([number]) => ROW_OF.get(number)).filter((row) => SPOTS.has(row));
}

function pathTraces(rows, path) {
  const stops = stations(rows, path);
  const [shade, width, size] = path === "best" ? [colour("front"), 2, 11] : [colour("ink"), 1, 7];
  const each = Math.max(1, Math.ceil((stops.length - 1) / PARTS));
  const strongest = path === "best" ? 1 : stops.length > 200 ? 0.3 : 0.7;
  const starts = stops.map((_, place) => place).filter((place) => place % each === 0 && place < stops.length - 1);
  return starts.map((start) => {
    const part = stops.slice(start, start + each + 1);
    return {
      type: "scatter",
      mode: stops.length > 200 ? "lines" : "lines+markers",
      x: part.map(mapX),
      y: part.map(mapY),
      hoverinfo: "skip",
      showlegend: false,
      opacity: strongest * (0.2 + 0.8 * Math.min(1, (start + each) / (stops.length - 1))),
      line: { width, color: shade },
      marker: { symbol: "arrow", angleref: "previous", standoff: 6, size: [0, ...part.slice(1).map(() => size)], color: shade, opacity: 1, line: { width: 0 } },
    };
  });
}

function drawMap() {
  const place = byId("map");
  if (!place) return Promise.resolve();
  const path = root.querySelector("[data-path][aria-pressed=true]").dataset.path;
  const rows = ROWS.filter((row) => SPOTS.has(row));
  const known = rows.filter((row) => measured(row, SCORE));
  const unknown = rows.filter((row) => !measured(row, SCORE));
  const faint = { size: 4, color: colour("edge"), opacity: 0.4 };
  const traces = [{ type: "scatter", mode: "markers", name: "other designs", x: DATA.map.x, y: DATA.map.y, hoverinfo: "skip", marker: faint }];
  if (path === "all") traces.push(...pathTraces(rows, path));
  const open = { size: 8, symbol: "circle-open", color: colour("quiet"), line: { width: 1.5 } };
  if (unknown.length) traces.push(points("without a score", unknown, mapX, mapY, open));
  // a graphics card would draw its points above all others
  traces.push(points("trials", known, mapX, mapY, scored(known), { type: "scatter" }));
  if (path === "best") traces.push(...pathTraces(rows, path)); // few lines, which thousands of dots would hide
  traces.push(...bestPoint(mapX, mapY));
  const bare = { title: "", showticklabels: false, ticks: "", showgrid: false, showline: false };
  const frame = { xaxis: axis(bare), yaxis: axis({ ...bare, scaleanchor: "x" }), margin: { l: 8, r: 8, t: 8, b: 8 }, showlegend: !COARSE };
  return draw(place, traces, layout(frame), (row) => [{ x: mapX(row), y: mapY(row), suffix: "" }]);
}
