// What all plots share: colours of the page, the tooltip, and how points are hovered and clicked.
const MANY = 2000; // points; beyond that SVG is slow, and the graphics card draws
const TIP = document.getElementById("tip");
const COARSE = window.matchMedia("(pointer: coarse), (max-width: 560px)").matches;
const SETTINGS = {
  displaylogo: false,
  displayModeBar: !COARSE,
  responsive: true,
  modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
};
const WITH_GRAPHICS = COUNT > MANY && hasGraphics();

function hasGraphics() {
  const context = document.createElement("canvas").getContext("webgl");
  context?.getExtension("WEBGL_lose_context")?.loseContext();
  return context !== null;
}

// Without a graphics card, a page of very many trials shows an even choice of them, and the best ones.
function drawable(rows) {
  if (WITH_GRAPHICS || rows.length <= MANY) return rows;
  const each = Math.ceil(rows.length / MANY);
  return rows.filter((row, place) => place % each === 0 || FRONT.has(row));
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

function axis(more) {
  const line = { gridcolor: colour("rule"), linecolor: colour("edge"), zeroline: false, automargin: true, exponentformat: "SI" };
  return { ...line, ...more, title: { text: more.title, standoff: 8 } };
}

function valueAxis(name, more = {}) {
  const ofModels = DATA.models.map(({ values }) => values[name] ?? null);
  const all = [...(VALUES.get(name)?.of ?? []), ...ofModels].filter((one) => one !== null && one > 0);
  const [least, most] = [all.reduce((a, b) => Math.min(a, b), Infinity), all.reduce((a, b) => Math.max(a, b), 0)];
  const log = kindOf(name) === "count" && most > 8 * least;
  const unit = kindOf(name) === "milliseconds" ? " (ms)" : "";
  return axis({ title: label(name.replace(/_ms$/, "")) + unit, type: log ? "log" : "linear", ...(log ? { dtick: "D2" } : {}), ...more });
}

function layout(more) {
  return {
    autosize: true,
    margin: { l: 56, r: COARSE ? 8 : 34, t: 8, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colour("ink") },
    hovermode: "closest",
    dragmode: COARSE ? false : "zoom",
    legend: { orientation: "h", y: 1, yanchor: "bottom", x: 0, font: { size: 12 } },
    modebar: { orientation: "v", bgcolor: "rgba(0,0,0,0)", color: colour("edge"), activecolor: colour("ink") },
    ...more,
  };
}

function points(name, rows, x, y, marker, more = {}) {
  const many = WITH_GRAPHICS && rows.length > MANY;
  return {
    type: many ? "scattergl" : "scatter",
    mode: "markers",
    name,
    x: rows.map(x),
    y: rows.map(y),
    customdata: rows,
    hoverinfo: "none",
    marker,
    ...more,
  };
}

// Ring the chosen trial in a plot. The rings lie above it: to move them, none of the points has to be drawn again.
function ringChosen(place) {
  place.querySelectorAll(":scope > .ring").forEach((old) => old.remove());
  for (const { x, y, suffix } of place.rings(chosen)) {
    const across = place._fullLayout[`xaxis${suffix}`];
    const up = place._fullLayout[`yaxis${suffix}`];
    if (x === null || y === null || !across || !up) continue;
    const [left, top] = [across.d2p(x), up.d2p(y)];
    if (!(left >= 0 && left <= across._length && top >= 0 && top <= up._length)) continue; // zoomed out of sight
    const made = element("span", "ring");
    made.style.left = `${across._offset + left}px`;
    made.style.top = `${up._offset + top}px`;
    place.append(made);
  }
}

// `rings` tells where a trial stands in the plot, in each of its pairs of axes; `more` what the plot alone knows of it.
async function draw(place, traces, frame, rings, more = () => []) {
  place.rings = rings;
  await Plotly.react(place, traces, frame, SETTINGS);
  if (place.dataset.ready) return;
  place.dataset.ready = "yes";
  ringChosen(place);
  whenChosen(() => ringChosen(place));
  place.on("plotly_afterplot", () => ringChosen(place));
  place.on("plotly_hover", (event) => showTip(event, more));
  place.on("plotly_unhover", hideTip);
  place.on("plotly_click", (event) => {
    const row = event.points.map((point) => point.customdata).find((found) => Number.isInteger(found));
    if (row !== undefined) choose(row);
  });
}

function showTip({ points: [point], event }, more) {
  const row = point.customdata;
  if (!Number.isInteger(row)) return;
  const names = [...VALUES.keys()].filter((name) => value(row, name) !== null).slice(0, 6);
  TIP.replaceChildren(
    element("b", "", `Trial ${THOUSANDS.format(TRIALS.number[row])}`),
    element("span", "", names.map((name) => `${name} ${shown(row, name)}`).join("  \u00b7  ")),
    ...more(row).map((line) => element("span", "", line)),
    element("span", "quiet", headlineOf(row)),
    ...summary(row, 5).map((line) => element("span", "line", line)),
  );
  TIP.hidden = false;
  const [width, height] = [TIP.offsetWidth, TIP.offsetHeight];
  const left = event.clientX + 18 + width > window.innerWidth ? event.clientX - width - 18 : event.clientX + 18;
  const top = Math.min(event.clientY + 14, window.innerHeight - height - 8);
  TIP.style.left = `${Math.max(8, left)}px`;
  TIP.style.top = `${Math.max(8, top)}px`;
}

function hideTip() {
  TIP.hidden = true;
}
