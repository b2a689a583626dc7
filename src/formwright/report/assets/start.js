// Everything begins here.
// A row of buttons of which one is pressed; `name` is that of the data they carry.
function startSwitch(name, pick) {
  const buttons = root.querySelectorAll(`[data-${name}]`);
  buttons.forEach((made) => made.addEventListener("click", () => {
    buttons.forEach((other) => other.setAttribute("aria-pressed", other === made));
    pick(made.dataset[name]);
  }));
}

function start() {
  if (!COUNT) {
    byId("trials").replaceChildren(element("h2", "", "All trials"), element("p", "note", "There is no trial yet."));
    return;
  }
  startPicks();
  startSwitch("axis", (axis) => {
    progressAxis = axis;
    drawProgress();
  });
  startSwitch("path", drawMap);
  startTable();
  choose(BEST ?? view.rows[0], false);
  markRow(chosen);
  whenChosen(markRow);
  drawPlots();
  root.querySelectorAll("[data-trial]").forEach((made) =>
    made.addEventListener("click", () => choose(ROW_OF.get(Number(made.dataset.trial)))));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPlots);
}

start();
