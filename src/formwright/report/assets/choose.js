// One trial is chosen at a time: its design stands beside the plots, its row is marked, and its points are ringed.
const PANEL = byId("chosen");
const listeners = [];
let chosen = null;

function whenChosen(listener) {
  listeners.push(listener);
}

function choose(row, byUser = true) {
  chosen = row;
  showPanel(row);
  PANEL.classList.toggle("open", byUser);
  listeners.forEach((listener) => listener(row));
}

function showPanel(row) {
  const state = STATE_WORDS[TRIALS.state[row]];
  const title = element("h3", "", `Trial ${THOUSANDS.format(TRIALS.number[row])} `, element("span", `badge ${state}`, state));
  if (row === BEST) title.append(" ", element("span", "badge best", "best"));
  else if (FRONT.has(row)) title.append(" ", element("span", "badge front", "front"));
  const close = button(TIMES, () => PANEL.classList.remove("open"), "close");
  close.setAttribute("aria-label", "Close");
  const parts = [title, close, element("p", "note", headlineOf(row))];
  const reason = DATA.reasons[TRIALS.number[row]];
  if (reason) parts.push(element("p", "reason", reason));
  PANEL.replaceChildren(...parts, facts(row), drawDesign(row), element("p", "digest", `digest ${TRIALS.digest[row]}`));
  PANEL.scrollTop = 0;
}

function facts(row) {
  const entries = [...VALUES.keys()].filter((name) => value(row, name) !== null).map((name) => [name, shown(row, name)]);
  entries.push(["time", figure(TRIALS.seconds[row], "seconds")]);
  if (TRIALS.steps[row]) entries.push(["training steps", figure(TRIALS.steps[row], "count")]);
  if (TRIALS.budget[row] !== null) entries.push(["budget in steps", figure(TRIALS.budget[row], "count")]);
  if (TRIALS.worker[row]) entries.push(["worker", TRIALS.worker[row]]);
  if (TRIALS.finished[row] !== null) entries.push(["ended", new Date(1000 * TRIALS.finished[row]).toLocaleString()]);
  const parent = ROW_OF.get(TRIALS.parent[row]);
  if (parent !== undefined) entries.push(["parent", button(`trial ${TRIALS.parent[row]}`, () => choose(parent), "link")]);
  return pairs(entries);
}
