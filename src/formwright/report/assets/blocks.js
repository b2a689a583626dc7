// One size is chosen at a time: its chain stands below the slider, and its cells are framed in the heat maps.
const OPTIONS = data.options;
const SLIDER = byId("size");
const COUNT = new Intl.NumberFormat("en");

function element(name, words, kind = "") {
  const made = document.createElement(name);
  made.textContent = words;
  made.className = kind;
  return made;
}

function part(title, operations) {
  const item = element("li", "");
  item.append(element("small", title));
  for (const operation of operations) {
    item.append(" ", element("span", operation.replace("separable-", "convolution "), operation.split("-")[0]));
  }
  return item;
}

function show(place) {
  const option = OPTIONS[place];
  byId("limit").textContent = COUNT.format(option.limit);
  SLIDER.setAttribute("aria-valuetext", `${COUNT.format(option.limit)} parameters`);
  byId("outcome").textContent =
    `${COUNT.format(option.params)} parameters, about ${option.ms} ms, sum of losses ${option.loss.toFixed(4)}`;
  const blocks = option.blocks.map((block, number) => part(`block ${number + 1}, ${block.width} wide`, block.operations));
  byId("chain").replaceChildren(part(`tokens, ${option.table} wide`, ["embedding"]), ...blocks);
  for (const cell of root.querySelectorAll(".cell")) {
    cell.classList.toggle("chosen", option.blocks[cell.dataset.block].cell === cell.dataset.cell);
  }
}

SLIDER.max = OPTIONS.length - 1;
SLIDER.value = Math.floor(OPTIONS.length / 2);
SLIDER.addEventListener("input", () => show(Number(SLIDER.value)));
show(Number(SLIDER.value));
