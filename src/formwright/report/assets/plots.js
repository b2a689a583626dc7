// The three plots: the trade-off between two values, the progress of the score, and the score against costs.
const PLACES = { front: byId("front"), progress: byId("progress"), costs: byId("costs") };
const picks = { x: byId("front-x"), y: byId("front-y") };
const FEW_MODELS = 3;
let progressAxis = "number";

function small(name, opacity) {
  return { size: COUNT > MANY ? 5 : 7, color: colour(name), opacity, line: { width: 0 } };
}

function startPicks() {
  const goals = [...GOALS.keys()];
  for (const pick of Object.values(picks)) {
    for (const name of [...VALUES.keys(), ...MODEL_VALUES.keys()]) pick.append(element("option", "", name));
    pick.addEventListener("change", drawFront);
  }
  const others = [...VALUES.keys(), ...MODEL_VALUES.keys()].filter((name) => name !== SCORE);
  const usual = [goals[1], "params", "macs"].find((name) => others.includes(name));
  picks.x.value = usual ?? others[0] ?? SCORE;
  picks.y.value = SCORE;
  byId("front-part").hidden = !others.length; // a score alone is no trade-off
}

function drawFront() {
  if (byId("front-part").hidden) return Promise.resolve();
  const [x, y] = [picks.x.value, picks.y.value];
  const at = [(row) => value(row, x), (row) => value(row, y)];
  const front = tradeOff(x, y);
  const special = new Set(front);
  const rows = ROWS.filter((row) => measured(row, x, y) && !special.has(row));
  const shape = direction(x) === "min" ? "hv" : "vh";
  const line = { line: { shape, color: colour("front"), width: 1.5 }, mode: "lines+markers", type: "scatter" };
  const traces = rows.length ? clouds(drawable(rows), ...at) : []; // only final models may be known along both axes
  if (front.length) traces.push(points("best trade-offs", front, ...at, { size: 9, color: colour("front") }, line));
  traces.push(...bestPoint(...at), ...modelPoints(x, y));
  const frame = { xaxis: valueAxis(x), yaxis: valueAxis(y), shapes: limitLines(x, y) };
  return draw(PLACES.front, traces, layout(frame), (row) => [{ x: at[0](row), y: at[1](row), suffix: "" }]);
}

// The trials within all limits, and those beyond one.
function clouds(rows, x, y, more) {
  const beyond = rows.filter((row) => !TRIALS.kept[row]);
  const crosses = { size: 6, symbol: "x-thin", opacity: 0.75, line: { width: 1.2, color: colour("edge") } };
  const kept = points("trials", rows.filter((row) => TRIALS.kept[row]), x, y, small("trial", 0.6), more);
  return beyond.length ? [kept, points("beyond a limit", beyond, x, y, crosses, more)] : [kept];
}

function bestPoint(x, y) {
  if (BEST === null || x(BEST) === null || y(BEST) === null) return [];
  return [points("best", [BEST], x, y, { size: 16, symbol: "star", color: colour("best"), line: { width: 1, color: colour("sheet") } })];
}

// The final models were trained longer than the trials: their names say how long. Many share one line of the legend.
function modelPoints(x, y) {
  const known = DATA.models.filter(({ values }) => values[x] !== undefined && values[y] !== undefined);
  const found = known.filter(({ baseline }) => !baseline);
  const together = found.length > FEW_MODELS ? [["final models", found]] : found.map((model) => [model.name, [model]]);
  const beside = known.filter(({ baseline }) => baseline).map((model) => [model.name, [model]]);
  return [...beside, ...together].map(([name, models]) => {
    const [{ baseline }] = models;
    const marker = { size: 12, symbol: baseline ? "diamond" : "star-diamond", color: modelColour(baseline), line: { width: 1, color: colour("sheet") } };
    const [across, up] = [x, y].map((axis) => models.map(({ values }) => values[axis]));
    const text = models.map((model) => label(model.name));
    return { type: "scatter", mode: "markers", name: label(name), x: across, y: up, text, marker, hoverinfo: "x+y+text" };
  });
}

function modelColour(baseline) {
  return colour(baseline ? "baseline" : "best");
}

function modelLines(from, to) {
  const known = DATA.models.filter(({ values }) => values[SCORE] !== undefined);
  const sign = GOALS.get(SCORE) === "max" ? -1 : 1;
  const found = known.filter(({ baseline }) => !baseline).sort((a, b) => sign * (a.values[SCORE] - b.values[SCORE]));
  const shown = found.slice(0, found.length > FEW_MODELS ? 1 : FEW_MODELS); // of many, the best
  return [...known.filter(({ baseline }) => baseline), ...shown].map(({ name, baseline, values }) => {
    const line = { dash: "dash", width: 1.5, color: modelColour(baseline) };
    return { type: "scatter", mode: "lines", name: label(name), x: [from, to], y: [values[SCORE], values[SCORE]], line, hoverinfo: "skip" };
  });
}

function limitLines(x, y) {
  const line = { color: colour("quiet"), width: 1, dash: "dot" };
  const across = DATA.limits.filter(({ name }) => name === x).map(({ bound }) => ({ x0: bound, x1: bound, y0: 0, y1: 1, yref: "paper" }));
  const up = DATA.limits.filter(({ name }) => name === y).map(({ bound }) => ({ y0: bound, y1: bound, x0: 0, x1: 1, xref: "paper" }));
  return [...across, ...up].map((where) => ({ type: "line", line, ...where }));
}

function progressX(row) {
  return progressAxis === "number" ? TRIALS.number[row] : TRIALS.elapsed[row];
}

function drawProgress() {
  const rows = drawable(ROWS.filter((row) => measured(row, SCORE) && progressX(row) !== null));
  const score = (row) => value(row, SCORE);
  const corners = DATA.progress[progressAxis];
  const line = { shape: "hv", color: colour("front"), width: 2 };
  const traces = clouds(rows, progressX, score);
  traces.push({ type: "scatter", mode: "lines", name: "best so far", x: corners.map(([at]) => at), y: corners.map(([, best]) => best), line, hoverinfo: "skip" });
  if (corners.length) traces.push(...modelLines(corners[0][0], corners[corners.length - 1][0]));
  traces.push(...bestPoint(progressX, score));
  const title = progressAxis === "number" ? "trial" : "seconds since the start, pauses left out";
  const frame = layout({ xaxis: axis({ title }), yaxis: valueAxis(SCORE) });
  return draw(PLACES.progress, traces, frame, (row) => [{ x: progressX(row), y: score(row), suffix: "" }]);
}

function costNames() {
  const above = DATA.goals[1]?.name ?? "params"; // the trade-off shows it already
  const costs = [...VALUES.keys()].filter((name) => ["count", "milliseconds"].includes(kindOf(name)));
  return costs.filter((name) => name !== SCORE && name !== above).slice(0, 3);
}

function drawCosts() {
  const names = costNames();
  byId("costs-part").hidden = !names.length;
  if (!names.length) return Promise.resolve();
  const across = PLACES.costs.clientWidth >= 520 ? names.length : 1;
  PLACES.costs.style.height = `${300 * Math.ceil(names.length / across)}px`;
  const frame = { grid: { rows: Math.ceil(names.length / across), columns: across, pattern: "independent", xgap: 0.22, ygap: 0.3 }, showlegend: false };
  const traces = names.flatMap((name, place) => {
    const suffix = place ? String(place + 1) : "";
    frame[`xaxis${suffix}`] = valueAxis(name);
    frame[`yaxis${suffix}`] = valueAxis(SCORE);
    const axes = { xaxis: `x${suffix}`, yaxis: `y${suffix}` };
    const at = [(row) => value(row, name), (row) => value(row, SCORE)];
    const rows = drawable(ROWS.filter((row) => measured(row, name, SCORE)));
    return [...clouds(rows, ...at, axes), ...bestPoint(...at).map((best) => ({ ...best, ...axes }))];
  });
  const rings = (row) => names.map((name, place) => ({ x: value(row, name), y: value(row, SCORE), suffix: place ? String(place + 1) : "" }));
  return draw(PLACES.costs, traces, layout(frame), rings);
}

async function drawPlots() {
  const thinned = byId("thinned");
  thinned.hidden = WITH_GRAPHICS || COUNT <= MANY;
  thinned.textContent = `This browser has no WebGL: the plots show an even choice of about ${THOUSANDS.format(MANY)} trials, and all on the front.`;
  for (const next of [drawFront, drawProgress, drawCosts, drawMap, drawPredictions]) {
    await new Promise((resume) => setTimeout(resume)); // the page can be read and used between two plots
    await next();
  }
}
