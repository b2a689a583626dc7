// Numbers as people read them, and elements that hold text, never markup.
const DASH = "\u2013";
const THOUSANDS = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const TWO_DIGITS = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

function figure(number, kind) {
  if (number === null || number === undefined) return DASH;
  if (kind === "count") return THOUSANDS.format(number);
  if (kind === "milliseconds") return `${TWO_DIGITS.format(number)} ms`;
  if (kind === "seconds") return duration(number);
  const size = Math.abs(number);
  if (size >= 1e9 || (size > 0 && size < 1e-3)) return number.toExponential(3);
  return size < 100 ? number.toFixed(4) : TWO_DIGITS.format(number);
}

function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(2)} s`;
  const parts = [];
  let left = Math.round(seconds);
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]]) {
    if (left >= size || parts.length) parts.push(`${Math.floor(left / size)} ${unit}`);
    left %= size;
  }
  return parts.slice(0, 2).join(" ");
}

function shown(row, name) {
  return figure(value(row, name), kindOf(name));
}

function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function button(words, onClick, className) {
  const made = element("button", className, words);
  made.type = "button";
  made.addEventListener("click", onClick);
  return made;
}

function pairs(entries) {
  return element("dl", "pairs", ...entries.map(([name, words]) =>
    element("div", "", element("dt", "", name), element("dd", "", words))));
}

// Plotly reads a little HTML in its labels; names from data must not be read so.
function label(words) {
  return words.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}
