// What the surrogate predicted of trials, with its interval, against what came out.
const GUESSES = new Map(DATA.predictions.map(([number, mean, low, high]) => [ROW_OF.get(number), { mean, low, high }]));

function guessed(row) {
  return GUESSES.get(row)?.mean ?? null;
}

function outcome(row) {
  return GUESSES.has(row) ? value(row, SCORE) : null;
}

function guessTrace(name, rows, shade) {
  const above = rows.map((row) => GUESSES.get(row).high - guessed(row));
  const below = rows.map((row) => guessed(row) - GUESSES.get(row).low);
  const bars = { type: "data", symmetric: false, array: above, arrayminus: below, color: shade, thickness: 1.2, width: 3 };
  return points(name, rows, outcome, guessed, { size: 8, color: shade, line: { width: 1, color: colour("sheet") } }, { error_y: bars });
}

function drawPredictions() {
  const place = byId("predictions");
  if (!place) return Promise.resolve();
  const rows = [...GUESSES.keys()];
  const holds = (row) => GUESSES.get(row).low <= outcome(row) && outcome(row) <= GUESSES.get(row).high;
  const both = rows.flatMap((row) => [outcome(row), guessed(row)]);
  const ends = [Math.min(...both), Math.max(...both)];
  const line = { color: colour("quiet"), width: 1, dash: "dot" };
  const traces = [
    { type: "scatter", mode: "lines", name: "as predicted", x: ends, y: ends, line, hoverinfo: "skip" },
    guessTrace("within the 90 % interval", rows.filter(holds), colour("trial")),
  ];
  const missed = rows.filter((row) => !holds(row));
  if (missed.length) traces.push(guessTrace("outside", missed, colour("front")));
  const name = label(SCORE.replace(/_ms$/, ""));
  const frame = { xaxis: axis({ title: `${name} that came out` }), yaxis: axis({ title: `${name} predicted` }) };
  const told = (row) => {
    const [mean, low, high] = ["mean", "low", "high"].map((end) => figure(GUESSES.get(row)[end], kindOf(SCORE)));
    return [`predicted ${mean}, between ${low} and ${high}`];
  };
  return draw(place, traces, layout(frame), (row) => [{ x: outcome(row), y: guessed(row), suffix: "" }], told);
}
