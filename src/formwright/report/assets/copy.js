// The button that copies the command line.
const copy = byId("copy");
copy?.addEventListener("click", async () => {
  const command = byId("command");
  getSelection().selectAllChildren(command); // where copying is not allowed, it is at least marked
  try {
    await navigator.clipboard.writeText(command.textContent);
    copy.textContent = "Copied";
  } catch {
    copy.textContent = document.execCommand("copy") ? "Copied" : "Marked";
  }
  setTimeout(() => (copy.textContent = "Copy"), 2000);
});
