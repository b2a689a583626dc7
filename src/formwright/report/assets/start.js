// Everything begins here.
function startCopying() {
  const copy = document.getElementById("copy");
  copy?.addEventListener("click", async () => {
    const command = document.getElementById("command");
    getSelection().selectAllChildren(command); // where copying is not allowed, it is at least marked
    try {
      await navigator.clipboard.writeText(command.textContent);
      copy.textContent = "Copied";
    } catch {
      copy.textContent = document.execCommand("copy") ? "Copied" : "Marked";
    }
    setTimeout(() => (copy.textContent = "Copy"), 2000);
  });
}

// A row of buttons of which one is pressed; `name` is that of the data they carry.
function startSwitch(name, pick) {
  const buttons = document.querySelectorAll(`[data-${name}]`);
  buttons.forEach((made) => made.addEventListener("click", () => {
    buttons.forEach((other) => other.setAttribute("aria-pressed", other === made));
    pick(made.dataset[name]);
  }));
}

function start() {
  startCopying();
  if (!COUNT) {
    document.getElementById("explore").replaceChildren(element("h2", "", "All trials"), element("p", "note", "There is no trial yet."));
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
  document.querySelectorAll("[data-trial]").forEach((made) =>
    made.addEventListener("click", () => choose(ROW_OF.get(Number(made.dataset.trial)))));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawPlots);
}

start();
