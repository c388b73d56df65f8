import pytest

from truearm.report.slider import Slider
from truearm.report.words import PLAIN

SECTIONS = ["candidates", "arms", "quality", "readings", "assumptions", "certificate"]

# For every text on the page the contrast of its color with what lies behind it, by the formula of WCAG 2.
CONTRASTS = """() => {
  const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.getClientRects().length) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.className || node.tagName]);
  }
  return found;
}"""
OVERLAPS = """() => [...document.querySelectorAll(".ticks, .marks")].flatMap((axis) => {
  const boxes = [...axis.children].map((c) => c.getBoundingClientRect()).filter((box) => box.width);
  return boxes.slice(1).filter((box, i) => box.left < boxes[i].right).map(() => axis.textContent);
})"""
ALL_STATES = """() => {
  const slider = document.getElementById("eps");
  const found = {};
  for (const radio of document.querySelectorAll("input[name=adversary]")) {
    radio.checked = true;
    found[radio.value] = [];
    for (let i = 0; i <= Number(slider.max); i += 1) {
      slider.value = i;
      slider.dispatchEvent(new Event("input", {bubbles: true}));
      const rows = [...document.querySelectorAll("#intervals .row:not(.excluded):not(.axis) .name")];
      found[radio.value].push(rows.map((name) => name.textContent));
    }
  }
  return found;
}"""


@pytest.fixture
def open_page(browser):
    opened = []

    def open_at(address, width=1400, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        opened.append(context)
        page = context.new_page()
        page.troubles = []
        page.on("console", lambda message: page.troubles.append(message.text))
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("dialog", lambda dialog: page.troubles.append(dialog.message))
        page.on("request", lambda request: request.url == address or page.troubles.append(request.url))
        page.goto(address)
        return page

    yield open_at
    for context in opened:
        context.close()


@pytest.fixture(scope="module")
def candidates(study):
    """Return per adversary the arms that could be best at every position of the slider."""
    slider = Slider(study.result, study.readings, PLAIN)
    return {
        adversary.value: [
            [arm for arm in study.problem.arms if points.get(arm) is None or eps > points[arm]]
            for eps in slider.eps
        ]
        for adversary, points in slider.points.items()
    }


def shown(page):
    return page.locator("#intervals .row:not(.excluded):not(.axis) .name").all_text_contents()


def position(page):
    return int(page.locator("#eps").input_value())


def test_every_position_shows_the_candidates_that_python_computes(open_page, written, candidates):
    assert open_page(written).evaluate(ALL_STATES) == candidates


def test_the_slider_starts_at_the_declared_contamination_with_and_without_scripts(open_page, written):
    rows = []
    for options in ({}, {"java_script_enabled": False}):
        page = open_page(written, **options)
        assert shown(page) == page.locator(".row.best .name").all_text_contents() == ["A"]
        assert page.get_by_text("Without JavaScript this chart shows").is_visible() == bool(options)
        assert page.locator("#eps").is_visible() != bool(options)
        assert page.locator("#intervals .sampling").first.bounding_box()["width"] > 10
        rows.append(page.locator("#intervals .row").all_text_contents())
    assert rows[0] == rows[1]


def test_the_slider_obeys_the_mouse_and_the_keyboard_and_says_where_it_is(open_page, written, candidates):
    page, known = open_page(written), candidates["oblivious"]
    last, box = len(known) - 1, page.locator("#eps").bounding_box()
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 8 + position(page) / last * (box["width"] - 16), middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, middle, steps=8)
    page.mouse.up()
    assert position(page) == last
    assert shown(page) == known[last]
    assert len(shown(page)) > 1
    slider = page.get_by_role("slider", name="Share of readings that may be bad")
    slider.focus()
    for key, expected in (("Home", 0), ("ArrowRight", 1), ("End", last)):
        slider.press(key)
        assert position(page) == expected
        assert shown(page) == known[expected]
    assert slider.get_attribute("aria-valuetext").endswith("may be bad")


def test_the_summary_follows_the_slider_and_intervals_widen(open_page, written, candidates):
    page = open_page(written)
    standing = page.get_by_role("status").filter(has_text="bad")
    assert "A is the best arm" in standing.text_content()
    assert standing.get_attribute("aria-live") == "polite"
    page.get_by_role("radio", name="malicious").check()
    assert "(malicious)" in standing.text_content()
    assert shown(page) == candidates["malicious"][position(page)]
    bar = page.locator("#intervals .row:first-child .sampling")
    widths = []
    for key in ("Home", "PageUp", "PageUp", "PageUp"):
        page.locator("#eps").press(key)
        widths.append(float(bar.get_attribute("width")))
    assert widths == sorted(widths)
    assert widths[-1] > widths[0]
    assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "3px"
    page.locator("#eps").press("End")
    assert "arms could be best: A" in standing.text_content()


def test_names_of_arms_stay_text_and_nothing_is_fetched(open_page, written, written_hostile):
    for address in (written, written_hostile):
        page = open_page(address)
        page.evaluate(ALL_STATES)
        assert page.troubles == []
    names = page.locator("#intervals .name").all_text_contents()
    assert names[:2] == ["<script>alert(1)</script>", "two\\x00\\x0alines\\u202e"]
    assert page.locator("script").count() == 3


@pytest.mark.parametrize(("width", "scale"), [(320, 1), (700, 2), (1400, 1)])
def test_nothing_is_wider_than_the_page_and_labels_do_not_overlap(
    open_page, written, written_hostile, width, scale
):
    for address in (written, written_hostile):
        page = open_page(address, width, device_scale_factor=scale)  # 700 at 2 is 1400 at 200 % zoom
        assert page.evaluate(OVERLAPS) == []
        for _ in ("at first", "at the end"):
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.locator("#eps").press("End")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_every_text_has_contrast(open_page, written, scheme, width):
    page = open_page(written, width, color_scheme=scheme)
    page.locator("#eps").press("End")
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 80
    assert min(contrasts)[0] >= 4.5, min(contrasts)


def test_on_paper_the_controls_are_gone_and_all_sections_stay(open_page, written):
    page = open_page(written, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("#eps").is_visible()
    assert all(page.locator(f"#{name}-title").is_visible() for name in SECTIONS)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")
