"""The page in a real browser: it opens, complains of nothing, and answers to the mouse and the keyboard."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from tests.report import studies
from tests.report.chromium import Browser
from tests.report.studies import COMPRESSED, FORMULAS, compressed_log, invented_log
from tests.report.test_page import EVIL, hostile_study

from formwright.report.facts import study_facts
from formwright.report.page import report_html
from formwright.report.palette import luminance
from formwright.space import Choice, Record, Space
from formwright.study.store import Log

pytestmark = pytest.mark.browser
CHOSEN = "#trials [aria-selected=true]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    names = ("small", "hostile", "many", "wide")
    studies.write_page(studies.small_study(folder / "small"), studies.SPACE, folder / "small.html")
    studies.write_page(hostile_study(folder / "hostile"), studies.SPACE, folder / "hostile.html")
    (folder / "many.html").write_text(report_html([studies.many_facts(folder / "many", 10_000)]), encoding="utf-8")
    (folder / "wide.html").write_text(report_html([studies.many_facts(folder / "wide", 250)]), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in names}


@pytest.fixture(autouse=True)
def _desk(browser: Browser) -> Iterator[None]:
    browser.resize(1280, 900)
    browser.prefer("light")
    yield
    assert browser.complaints() == []


def chosen(browser: Browser) -> int:
    return int(browser.words(f"{CHOSEN} td").replace(",", ""))


def listed(browser: Browser, column: int) -> list[str]:
    script = (
        "return [...document.querySelectorAll('#trials tbody tr')].map((row) => row.cells[arguments[0]].textContent)"
    )
    found: list[str] = browser.run(script, column)
    return found


def show(browser: Browser, folder: Path, log: Log, space: Space) -> None:
    """Write the page of a study, and open it."""
    studies.write_page(log, space, folder / "report.html")
    browser.open(folder / "report.html")


def pick(browser: Browser, name: str, value: str) -> None:
    """Choose the value of a select element."""
    script = "const made = document.getElementById(arguments[0]); [made.value] = [arguments[1]];"
    browser.run(f"{script} made.dispatchEvent(new Event('change'))", name, value)


def test_it_opens_with_the_best_design_chosen_and_its_command_can_be_copied(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["small"])
    best = study_best(browser)
    assert chosen(browser) == best
    assert browser.words("#chosen h3").startswith(f"Trial {best} ")
    assert len(browser.all("#best svg")) == 1
    assert all(browser.run("return [...document.querySelectorAll('.plot')].map((plot) => plot.data.length > 0)"))
    browser.open(pages["small"])
    browser.click("#copy")
    browser.wait(lambda: browser.words("#copy") in ("Copied", "Marked"))
    assert browser.run("return getSelection().toString()") == "formwright search --seed 0"


def study_best(browser: Browser) -> int:
    return int(browser.run("return JSON.parse(document.getElementById('data').textContent).trials.best"))


def test_points_show_their_design_when_hovered_and_choose_it_when_clicked(
    browser: Browser, pages: dict[str, Path]
) -> None:
    browser.open(pages["small"])
    for plot, row in (("front", 0), ("progress", 2), ("costs", 3)):
        browser.point_at(plot, row)
        browser.wait(lambda: browser.one("#tip").is_displayed())
        assert browser.words("#tip").startswith(f"Trial {row}accuracy 0.")
        assert "feed-forward" in browser.words("#tip")
        browser.press()
        browser.wait(lambda row=row: chosen(browser) == row)
        assert browser.words("#chosen h3").startswith(f"Trial {row} ")
        assert browser.one("#chosen .drawing .layer").is_displayed()
        assert len(browser.all("#front > .ring")) == 1


def test_the_table_sorts_filters_and_chooses(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["small"])
    dash = "\N{EN DASH}"
    assert listed(browser, 2) == ["0.7400", "0.7400", "0.6900", "0.6100", dash, dash], "what is missing stands last"
    browser.click("#trials tbody tr:nth-child(2) td:nth-child(3)")
    first, second = listed(browser, 0)[1:3]
    assert chosen(browser) == int(first)
    browser.click("#trials tbody tr:nth-child(2) button")
    browser.one("#trials tbody tr:nth-child(2) button").send_keys(Keys.ARROW_DOWN)
    assert chosen(browser) == int(second)
    browser.click("#trials th:nth-child(3) button")
    assert listed(browser, 2) == ["0.6100", "0.6900", "0.7400", "0.7400", dash, dash]
    assert browser.one("#trials th:nth-child(3)").get_attribute("aria-sort") == "ascending"
    browser.click("#failures [data-trial='4']")
    assert "the loss is not a number" in browser.words("#chosen")
    assert browser.all("#front > .ring") == []
    browser.click("[data-filter=running]")
    assert listed(browser, 1) == ["running"]
    browser.click("[data-filter=failed]")
    assert listed(browser, 0) == ["4"]


def test_pages_of_the_table_and_other_axes(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["wide"])
    browser.click("#trials th:nth-child(1) button")
    assert len(listed(browser, 0)) == 100
    browser.click("#next")
    browser.click("#next")
    assert (listed(browser, 0)[0], len(listed(browser, 0))) == ("200", 50)
    assert browser.words("#page-of") == "201\N{EN DASH}250 of 250"
    assert not browser.one("#next").is_enabled()
    browser.open(pages["wide"])
    browser.click("[data-axis=seconds]")
    times = "return document.getElementById('progress').data[0].x.slice(0, 3)"
    browser.wait(lambda: browser.run(times) == [0, 2.5, 5])
    browser.run(
        "const pick = document.getElementById('front-x'); pick.value = 'macs'; pick.dispatchEvent(new Event('change'))"
    )
    browser.wait(lambda: browser.run("return document.getElementById('front').layout.xaxis.title.text") == "macs")


def test_hostile_names_run_nothing(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["hostile"])
    pick(browser, "front-y", EVIL)
    browser.wait(lambda: "<b>bold</b>" in browser.words("#front .ytitle"))
    browser.point_at("progress", 1)
    browser.wait(lambda: browser.one("#tip").is_displayed())
    browser.press()
    browser.wait(lambda: chosen(browser) == 1)
    browser.click("#failures [data-trial='3']")
    assert EVIL in browser.words("#chosen .reason")
    assert EVIL in browser.words("#trials thead")
    assert browser.run("return window.hacked ?? null") is None
    assert browser.all("img") == []


@pytest.mark.parametrize("width", [1280, 400])
def test_several_searches_answer_each_for_itself(browser: Browser, tmp_path: Path, width: int) -> None:
    facts = [study_facts(studies.small_study(tmp_path / name), studies.SPACE) for name in ("one", "two")]
    page = tmp_path / "report.html"
    page.write_text(report_html(facts), encoding="utf-8")
    browser.resize(width, 900)
    browser.open(page)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert len(browser.all("#search-1 .plot")) == len(browser.all("#search-2 .plot")) > 0
    first = browser.words("#search-1-chosen h3")
    browser.click("#search-2-failures [data-trial='4']")
    assert browser.words("#search-2-chosen h3").startswith("Trial 4 ")
    assert browser.words("#search-1-chosen h3") == first
    browser.run("document.querySelector('#search-1 [data-filter=failed]').click()")
    assert len(browser.all("#search-1-table tbody tr")) == 1
    assert len(browser.all("#search-2-table tbody tr")) == 6


def test_pages_without_trials_or_of_failures_alone(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, studies.new_log(tmp_path), studies.SPACE)
    assert "There is no trial yet." in browser.words("#trials")
    log = studies.new_log(tmp_path / "failures")
    for number in range(2):
        studies.ask(log, number)
    studies.fail(log, 0, "out of memory")
    show(browser, tmp_path, log, studies.SPACE)
    assert browser.words("#chosen h3").startswith("Trial 0 ")


def test_one_goal_is_drawn_against_size(browser: Browser, tmp_path: Path) -> None:
    log = studies.new_log(tmp_path, objectives=["loss:min"])
    for number in range(3):
        studies.ask(log, number)
        studies.tell(log, number, loss=1.0 / (number + 1))
    show(browser, tmp_path, log, studies.SPACE)
    titles = (
        "const { xaxis, yaxis } = document.getElementById('front').layout; return [xaxis.title.text, yaxis.title.text]"
    )
    assert browser.run(titles) == ["params", "loss"]
    assert chosen(browser) == 2


@pytest.mark.long
def test_the_map_and_the_predictions_choose_trials(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, studies.searched_study(tmp_path), studies.SPACE)
    assert browser.run("return document.getElementById('map').data[0].x.length") > 1_000
    for plot, row, words in (("map", 5, "accuracy 0."), ("map", 24, "Trial 24"), ("predictions", 20, "predicted 0.")):
        browser.point_at(plot, row)
        browser.wait(lambda words=words: browser.one("#tip").is_displayed() and words in browser.words("#tip"))
        browser.press()
        browser.wait(lambda row=row: chosen(browser) == row)
        assert browser.words("#chosen h3").startswith(f"Trial {row} ")
        assert len(browser.all(f"#{plot} > .ring")) == 1
    assert steps_of_the_path(browser) == 24
    browser.click("[data-path=best]")
    browser.wait(lambda: 0 < steps_of_the_path(browser) < 24)


def steps_of_the_path(browser: Browser) -> int:
    lines = "document.getElementById('map').data.filter(({ mode }) => mode.startsWith('lines'))"
    return int(browser.run(f"return {lines}.reduce((sum, {{ x }}) => sum + x.length - 1, 0)"))


def test_designs_that_are_plain_data_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    space = Space("knobs", Record.of(a=Choice(tuple(range(9))), b=Choice((1, 2))), lambda d: {"a": d.a, "<b>": d.b})
    log = studies.new_log(tmp_path, space={"python": "knobs#1"}, task=None, objectives=["score:max"])
    studies.told(log, space, [-1e30 * number for number in range(9)])
    show(browser, tmp_path, log, space)
    assert '"<b>"' in browser.words("#chosen pre")
    assert '"<b>"' in browser.words("#best pre")
    assert "one-hot" in browser.words("#map-part")
    assert not browser.one("#front-part").is_displayed(), "a score alone is no trade-off"
    assert "-1.000e+30" in listed(browser, 2)
    assert browser.run("return document.querySelectorAll('#map .point').length") >= 9


def test_a_compressed_model_shows_its_space_and_where_its_models_stand(browser: Browser, tmp_path: Path) -> None:
    show(browser, tmp_path, compressed_log(tmp_path), COMPRESSED)
    assert len(browser.all("#space figure svg circle")) == 24
    assert len(browser.all("#chosen-widths tbody tr")) == 4
    pick(browser, "front-x", "int8_ms")
    browser.wait(lambda: browser.run("return document.getElementById('front').layout.xaxis.title.text") == "int8 (ms)")
    marks = "return document.getElementById('front').data.map(({ name, x, marker }) => [name, x, marker.symbol])"
    teacher, *found = browser.run(marks)
    assert teacher == ["teacher after 500 steps", [4.0], "diamond"]
    assert [symbol for _, _, symbol in found] == ["star-diamond"] * 3


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_drawings_of_widths_can_be_told_from_their_ground(browser: Browser, tmp_path: Path, scheme: str) -> None:
    browser.prefer(scheme)
    show(browser, tmp_path, compressed_log(tmp_path), COMPRESSED)
    fill = "return getComputedStyle(document.querySelector(arguments[0])).fill"
    ground = browser.run("return getComputedStyle(document.getElementById('space')).backgroundColor")
    colours = [browser.run(fill, f"#chosen-widths .{name}") for name in ("heads", "channels", "full")]
    assert len({ground, *colours}) == 4
    assert contrast(browser.run(fill, "#space text"), ground) > 7
    assert all(contrast(colour, ground) > 3 for colour in colours[:2])


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        *(pytest.param(*each, marks=pytest.mark.long) for each in ((400, "light"), (1280, "dark"), (400, "dark"))),
    ],
)
def test_a_search_of_formulas_shows_them_and_its_lives_choose_trials(
    browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    browser.resize(width, 900)
    browser.prefer(scheme)
    show(browser, tmp_path, invented_log(tmp_path, 7), FORMULAS)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert len(browser.all("#formulas tbody tr svg")) == 3
    born = browser.all("#population .life circle")[0]
    number = int(browser.run("return arguments[0].parentElement.dataset.trial", born))
    born.click()
    browser.wait(lambda: browser.words("#chosen h3").startswith(f"Trial {number} "))
    ground = browser.run("return getComputedStyle(document.getElementById('operations')).backgroundColor")
    words = browser.run("return getComputedStyle(document.querySelector('#operations .figure')).fill")
    assert contrast(words, ground) > 7
    for cell in browser.all("#operations .cell"):
        colour = browser.run(PAINTED, cell)
        assert contrast(words, colour) > 4.5, "numbers can be read on every colour"


# a colour that was mixed is told in the unit of its mixing, so it is painted and looked at
PAINTED = """
const pen = document.createElement("canvas").getContext("2d");
pen.fillStyle = getComputedStyle(arguments[0]).fill;
pen.fillRect(0, 0, 1, 1);
return `rgb(${[...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).join(", ")})`;
"""


def contrast(one: str, other: str) -> float:
    """Give the contrast of two colours of a browser, by the Web Content Accessibility Guidelines."""
    shades = [
        luminance("#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", it)[:3])) for it in (one, other)
    ]
    return (max(shades) + 0.05) / (min(shades) + 0.05)


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_window(browser: Browser, pages: dict[str, Path], width: int, scheme: str) -> None:
    browser.resize(width, 900)
    browser.prefer(scheme)
    browser.open(pages["small"])
    assert browser.run("return document.documentElement.scrollWidth") <= width
    light = browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(246, 245, 241)"
    assert light == (scheme == "light")


def test_on_a_small_screen_the_design_opens_and_closes(browser: Browser, pages: dict[str, Path]) -> None:
    browser.resize(400, 800)
    browser.open(pages["small"])
    assert not browser.one("#chosen").is_displayed()
    browser.click("#trials tbody tr:nth-child(2)")
    browser.wait(lambda: browser.one("#chosen .close").is_displayed())
    browser.wait(lambda: browser.run("return document.getAnimations().length") == 0)
    browser.one("#chosen .close").click()
    browser.wait(lambda: not browser.one("#chosen").is_displayed())


@pytest.mark.long
def test_ten_thousand_trials_respond(browser: Browser, pages: dict[str, Path]) -> None:
    assert pages["many"].stat().st_size < 20_000_000
    browser.driver.execute_cdp_cmd("Performance.disable", {})
    browser.driver.execute_cdp_cmd("Performance.setTimeDomain", {"timeDomain": "threadTicks"})
    browser.driver.execute_cdp_cmd("Performance.enable", {})
    browser.open(pages["many"])
    assert browser.run("return document.getElementById('front').data[0].type") == "scattergl"
    metrics = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    # its own time, not that of whatever else the machine does
    assert {entry["name"]: entry["value"] for entry in metrics}["ThreadTime"] < 5.0
    browser.point_at("front", 5_000)
    browser.wait(lambda: browser.one("#tip").is_displayed())
    before = chosen(browser)
    browser.press()
    browser.wait(lambda: chosen(browser) != before)
    response = """
    const [done, start] = [arguments[0], performance.now()];
    document.querySelector("#trials tbody tr:nth-child(7) button").click();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
    """
    assert browser.driver.execute_async_script(response) < 500
