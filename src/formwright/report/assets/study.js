// The study: the data of the page, and questions about it. A trial is known here by its row in the columns.
const DATA = data;
const TRIALS = DATA.trials;
const COUNT = TRIALS.number.length;
const ROWS = Array.from({ length: COUNT }, (_, row) => row);
const [FINISHED, RUNNING, FAILED] = [0, 1, 2];
const STATE_WORDS = ["finished", "running", "failed"];
const ROW_OF = new Map(TRIALS.number.map((number, row) => [number, row]));
const BEST = DATA.best === null ? null : ROW_OF.get(DATA.best);
const FRONT = new Set(DATA.front.map((number) => ROW_OF.get(number)));
const VALUES = new Map(DATA.values.map((column) => [column.name, column]));
const MODEL_VALUES = new Map(DATA.model_values.map((column) => [column.name, column])); // known of no trial
const GOALS = new Map(DATA.goals.map((goal) => [goal.name, goal.direction]));
const BUDGETS = TRIALS.budget.map((steps) => steps ?? Infinity);
const LONGEST = ROWS.reduce((most, row) => (TRIALS.state[row] === FINISHED ? Math.max(most, BUDGETS[row]) : most), 0);
const SCORE = DATA.goals[0].name;

function value(row, name) {
  return VALUES.get(name)?.of[row] ?? null;
}

function kindOf(name) {
  return (VALUES.get(name) ?? MODEL_VALUES.get(name)).kind;
}

// "max", "min", or null for what is neither a goal nor a cost
function direction(name) {
  if (GOALS.has(name)) return GOALS.get(name);
  return kindOf(name) === "score" ? null : "min";
}

function measured(row, ...names) {
  return TRIALS.state[row] === FINISHED && names.every((name) => value(row, name) !== null);
}

// The rows within all limits that no other one beats in both values, from left to right. Only those with the largest
// budget count: a score after few steps says little beside theirs.
function tradeOff(x, y) {
  const goals = [...GOALS.keys()];
  const study = goals.length === 2 && goals.includes(x) && goals.includes(y);
  const rows = (study ? [...FRONT] : ROWS).filter((row) => TRIALS.kept[row] && BUDGETS[row] === LONGEST && measured(row, x, y));
  const signs = [x, y].map((name) => ({ max: -1, min: 1 })[direction(name)]);
  if (x === y || signs.includes(undefined)) return [];
  const [across, up] = [x, y].map((name, axis) => (row) => signs[axis] * value(row, name));
  rows.sort((a, b) => across(a) - across(b) || up(a) - up(b));
  let least = Infinity;
  const kept = rows.filter((row) => up(row) < least && ((least = up(row)), true));
  return signs[0] < 0 ? kept.reverse() : kept;
}
