"""A real browser without a window, that the tests of the page drive."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.remote.webelement import WebElement

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-unsafe-swiftshader",
)
READY = "return [...document.querySelectorAll('.plot')].every((plot) => plot.dataset.ready || !plot.offsetParent)"
# where a trial stands on the screen, in the first of the traces that has its point
PLACE = """
const [plot, number] = [document.getElementById(arguments[0]), arguments[1]];
for (const { x, y, customdata } of plot.data) {
  const place = (customdata ?? []).indexOf(number);
  if (place < 0) continue;
  const [{ left, top }, { xaxis, yaxis }] = [plot.getBoundingClientRect(), plot._fullLayout];
  return [left + xaxis._offset + xaxis.d2p(x[place]), top + yaxis._offset + yaxis.d2p(y[place])];
}
"""


class Browser:
    """Chromium with a profile of its own; everything is asked for by CSS selectors."""

    def __init__(self, profile: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = _program("chromium", "chromium-browser", "google-chrome")
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(_program("chromedriver"))
        self.driver = webdriver.Chrome(options=options, service=service)
        self.resize(1280, 900)

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def prefer(self, scheme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def open(self, page: Path) -> None:
        self.driver.get(page.as_uri())
        self.wait(lambda: self.run(READY))

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: Callable[[], Any], seconds: float = 40.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not happen in time"
            time.sleep(0.02)

    def one(self, selector: str) -> WebElement:
        return self.driver.find_element("css selector", selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", selector)

    def words(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'center' })", selector)
        self.one(selector).click()

    def point_at(self, plot: str, row: int) -> None:
        """Move the mouse onto the point of a trial."""
        self.run("document.getElementById(arguments[0]).scrollIntoView({ block: 'center' })", plot)
        x, y = self.run(PLACE, plot, row)
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(0, 0)
        actions.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        actions.perform()

    def press(self) -> None:
        """Click where the mouse is."""
        ActionChains(self.driver).click().perform()

    def complaints(self) -> list[str]:
        """Give the errors that the browser has written down since it was last asked."""
        entries = self.driver.get_log("browser")
        return [entry["message"] for entry in entries if entry["level"] == "SEVERE"]


def _program(*names: str) -> str:
    found = next(filter(None, map(shutil.which, names)), None)
    assert found is not None, f"install {names[0]} to run the tests marked `browser`"
    return found
