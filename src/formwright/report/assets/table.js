// The table of trials: sorted by any column, filtered by state, a hundred rows a page.
const PAGE = 100;
const TABLE = byId("table");
const FILTERS = [
  ["all", () => true],
  ["front", (row) => FRONT.has(row)],
  ["finished", (row) => TRIALS.state[row] === FINISHED],
  ["running", (row) => TRIALS.state[row] === RUNNING],
  ["failed", (row) => TRIALS.state[row] === FAILED],
];
const COLUMNS = [
  { name: "trial", of: (row) => TRIALS.number[row], words: (row) => THOUSANDS.format(TRIALS.number[row]) },
  { name: "state", badge: true, of: (row) => TRIALS.state[row], words: (row) => STATE_WORDS[TRIALS.state[row]] },
  ...[...VALUES.keys()].map((name) => ({ name, of: (row) => value(row, name), words: (row) => shown(row, name) })),
  { name: "time", of: (row) => TRIALS.seconds[row], words: (row) => figure(TRIALS.seconds[row], "seconds") },
  { name: "steps", of: (row) => TRIALS.steps[row], words: (row) => figure(TRIALS.steps[row], "count") },
  { name: "parent", of: (row) => TRIALS.parent[row], words: (row) => figure(TRIALS.parent[row], "count") },
  { name: "design", text: true, of: headlineOf, words: headlineOf },
];
const SCORE_COLUMN = 2; // goals stand before all other values
const view = { filter: "all", column: 0, descending: false, page: 0, rows: ROWS };

function startTable() {
  TABLE.tHead.append(element("tr", "", ...COLUMNS.map(heading)));
  byId("states").append(...FILTERS.map(([name, keeps]) => {
    const count = ROWS.filter(keeps).length;
    const made = button(`${name} ${THOUSANDS.format(count)}`, () => arrange({ filter: name, page: 0 }));
    made.dataset.filter = name;
    made.disabled = count === 0;
    return made;
  }));
  byId("previous").addEventListener("click", () => turn(view.page - 1));
  byId("next").addEventListener("click", () => turn(view.page + 1));
  TABLE.tBodies[0].addEventListener("click", (event) => {
    const line = event.target.closest("tr");
    if (line) choose(Number(line.dataset.row));
  });
  TABLE.tBodies[0].addEventListener("keydown", walk);
  arrange({ column: SCORE_COLUMN, descending: GOALS.get(SCORE) === "max" });
}

function heading({ name, badge, text }, column) {
  const numeric = !badge && !text;
  const made = element("th", numeric ? "number" : "", button(name, () => {
    const descending = view.column === column ? !view.descending : numeric && column > 0;
    arrange({ column, descending, page: 0 });
  }));
  made.scope = "col";
  return made;
}

function arrange(change) {
  Object.assign(view, change);
  const { of } = COLUMNS[view.column];
  const sign = view.descending ? -1 : 1;
  const keeps = new Map(FILTERS).get(view.filter);
  const keyed = ROWS.filter(keeps).map((row) => [of(row), row]);
  // what has no value stands at the end, whichever way the others are sorted
  keyed.sort(([a, i], [b, j]) => (a === null) - (b === null) || sign * ((a > b) - (a < b)) || i - j);
  view.rows = keyed.map(([, row]) => row);
  [...TABLE.tHead.rows[0].cells].forEach((cell, column) => {
    if (column === view.column) cell.setAttribute("aria-sort", view.descending ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  });
  root.querySelectorAll("[data-filter]").forEach((made) => made.setAttribute("aria-pressed", made.dataset.filter === view.filter));
  turn(view.page);
}

function turn(page) {
  const last = Math.max(0, Math.ceil(view.rows.length / PAGE) - 1);
  view.page = Math.min(Math.max(page, 0), last);
  const start = view.page * PAGE;
  const rows = view.rows.slice(start, start + PAGE);
  TABLE.tBodies[0].replaceChildren(...rows.map(line));
  byId("previous").disabled = view.page === 0;
  byId("next").disabled = view.page === last;
  const span = rows.length ? `${THOUSANDS.format(start + 1)}${DASH}${THOUSANDS.format(start + rows.length)}` : "0";
  byId("page-of").textContent = `${span} of ${THOUSANDS.format(view.rows.length)}`;
  byId("table-scroll").scrollTop = 0;
}

function line(row) {
  const cells = COLUMNS.map(({ words, badge, text }, column) => {
    if (column === 0) return element("td", "number", element("button", "link", words(row)));
    if (badge) return element("td", "", element("span", `badge ${words(row)}`, words(row)));
    return element("td", text ? "" : "number", words(row));
  });
  const made = element("tr", FRONT.has(row) ? "on-front" : "", ...cells);
  made.dataset.row = row;
  made.setAttribute("aria-selected", row === chosen);
  return made;
}

function markRow(row) {
  let place = view.rows.indexOf(row);
  if (place < 0) {
    arrange({ filter: "all" });
    place = view.rows.indexOf(row);
  }
  if (Math.floor(place / PAGE) !== view.page) turn(Math.floor(place / PAGE));
  for (const made of TABLE.tBodies[0].rows) made.setAttribute("aria-selected", Number(made.dataset.row) === row);
  const [made, box] = [TABLE.tBodies[0].rows[place % PAGE], byId("table-scroll")];
  const top = made.offsetTop - TABLE.tHead.offsetHeight;
  const visible = top >= box.scrollTop && made.offsetTop + made.offsetHeight <= box.scrollTop + box.clientHeight;
  if (!visible) box.scrollTop = top - box.clientHeight / 3; // the box scrolls, the page does not jump
}

function walk(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const next = view.rows[view.rows.indexOf(chosen) + step];
  if (step === undefined || next === undefined) return;
  event.preventDefault();
  choose(next);
  TABLE.tBodies[0].querySelector(`[data-row="${next}"] button`)?.focus({ preventScroll: true });
}
