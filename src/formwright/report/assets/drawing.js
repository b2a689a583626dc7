// The drawing of a design: every layer a box as wide as the layer, with its mixers in colour and its feed-forward in grey.
const { of: DESIGNS, layers: LAYERS, phrases: PHRASES, swatches: SWATCHES } = DATA.designs;
const TIMES = "\u00d7";

function runs(layers) {
  const found = [];
  layers.forEach((layer, index) => {
    const last = found[found.length - 1];
    if (last && last.layer === layer) last.times += 1;
    else found.push({ layer, times: 1, first: index + 1 });
  });
  return found;
}

// A design that is not a Formwright card is JSON text, and nothing is drawn of it.
function isData(row) {
  return typeof DESIGNS[row][1] === "string";
}

function headlineOf(row) {
  return PHRASES[DESIGNS[row][0]];
}

// A few short lines that tell a design from its neighbours.
function summary(row, most) {
  if (isData(row)) return [];
  const all = DESIGNS[row][2].flatMap(([, , layers]) => runs(layers));
  const lines = all.slice(0, most).map(({ layer, times }) => {
    const words = LAYERS[layer][5].map((phrase) => PHRASES[phrase]).join("; ");
    return `${times} ${TIMES} ${words}`;
  });
  return all.length > most ? [...lines, `and ${all.length - most} more`] : lines;
}

function drawDesign(row) {
  if (isData(row)) return element("pre", "drawing", DESIGNS[row][1]);
  const [, head, stacks] = DESIGNS[row];
  const scale = scales(stacks.flatMap(([, , layers]) => layers));
  const drawing = element("div", "drawing");
  stacks.forEach(([first, second, layers], index) => {
    const name = stacks.length > 1 ? ["Encoder", "Decoder"][index] : "";
    if (name) drawing.append(element("h4", "", name));
    drawing.append(step("embedding", 1, [], "Embedding", [first, second].map((phrase) => PHRASES[phrase])));
    let before = null;
    for (const run of runs(layers)) {
      const [, width, output] = LAYERS[run.layer];
      if (before !== null && before !== width) drawing.append(funnel(before, width));
      drawing.append(drawRun(run, scale));
      before = output;
    }
  });
  head.forEach((phrase) => drawing.append(step("head", 0.5, [], "", [PHRASES[phrase]])));
  drawing.append(legend(stacks));
  return drawing;
}

// One scale for all widths, and one for all bars, at which the fullest box just holds its bars.
function scales(layers) {
  const shapes = layers.map((layer) => LAYERS[layer]);
  const full = shapes.filter(([, , , , bars]) => bars.length).map(([, width, , , bars]) => width / Math.max(...bars));
  return { widest: Math.max(...shapes.map(([, width]) => width)), bar: Math.min(1, ...full) };
}

function drawRun({ layer, times, first }, scale) {
  const [words, width, , bands, bars, lines] = LAYERS[layer];
  const inside = bands.map((band) => element("div", "band", ...band.map(drawBox)));
  bars.forEach((bar) => {
    const drawn = element("div", "bar");
    drawn.style.width = `${(100 * bar * scale.bar) / width}%`;
    inside.push(drawn);
  });
  const name = times > 1 ? `Layers ${first}${DASH}${first + times - 1}` : `Layer ${first}`;
  const drawn = step("layer", width / scale.widest, inside, `${name}, ${PHRASES[words]}`, lines.map((line) => PHRASES[line]));
  if (times > 1) drawn.firstChild.firstChild.append(element("span", "times", `${TIMES} ${times}`));
  return drawn;
}

function drawBox([swatch, heads]) {
  const { colour, filled } = SWATCHES[swatch];
  const box = element("div", "box");
  for (let head = 0; head < Math.min(heads, 16); head += 1) {
    const part = element("i", filled ? "" : "empty");
    if (filled) part.style.background = colour;
    box.append(part);
  }
  return box;
}

function step(kind, share, inside, name, lines) {
  const shape = element("div", `shape ${kind}`, ...inside);
  shape.style.width = `${Math.max(100 * share, 12)}%`;
  const words = element("div", "words", ...(name ? [element("b", "", name)] : []));
  lines.forEach((line) => words.append(element("span", "", line)));
  return element("div", "step", element("div", "place", shape), words);
}

function funnel(before, after) {
  const drawn = step("funnel", 1, [], "", [`projection ${before} \u2192 ${after}`]);
  drawn.firstChild.firstChild.classList.add(before < after ? "wider" : "narrower");
  return drawn;
}

function legend(stacks) {
  const used = new Set(stacks.flatMap(([, , layers]) => layers).flatMap((layer) => LAYERS[layer][3].flat().map(([kind]) => kind)));
  const entries = [...used].map((kind) => entry(SWATCHES[kind].name, SWATCHES[kind].filled ? SWATCHES[kind].colour : ""));
  return element("ul", "legend", ...entries, entry("feed-forward", "#7B8794"));
}

function entry(name, colour) {
  const mark = element("i", colour ? "" : "empty");
  mark.style.background = colour;
  return element("li", "", mark, name);
}
