"""The pages of the service in a real browser, over a real server: what a team sees."""

import random
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest

from service.serving import SOURCE, Server
from truearm.service.access import create_token
from truearm.store import Database

from .test_browser_page import CONTRASTS

HOSTILE = "<img src=x onerror=alert(1)>"
PHONE = {"viewport": {"width": 390, "height": 780}, "has_touch": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("pages") / "studies.db", "--rate", "100000") as found:
        yield found


@contextmanager
def opened(browser, url, **more):
    """Open a page of its own; whatever its script or its policy complains about fails the test."""
    context = browser.new_context(**more)
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if "Security" in message.text else None)
    page.goto(url)
    yield page
    context.close()
    assert not complaints


@contextmanager
def measuring(browser, url, name):
    """Open the card of a study on a phone."""
    with opened(browser, f"{url}/next", **PHONE) as page:
        page.fill("#worker", name)
        page.click("text=Start")
        page.wait_for_selector("#card:visible")
        yield page


def begun(server, name, arms=("Lemon", "Ginger", "Mint"), **more):
    with server.client() as http:
        body = {"arms": list(arms), "id": name, "title": f"About {name}", "contamination": None, **more}
        assert http.post("/studies", json=body).status_code == 201
    return f"{server.url}/s/{name}"


def told(server, name, rounds, seed=1, n=16):
    """Measure some pulls; the second arm is the best."""
    draw = random.Random(seed)
    with server.client() as http:
        for _ in range(rounds):
            asked = http.post(f"/studies/{name}/ask", json={"worker": "ann", "n": n}).json()
            if not asked["pulls"]:
                return
            arms = http.get(f"/studies/{name}").json()["definition"]["problem"]["arms"]
            values = [
                {"ticket": pull["ticket"], "value": draw.gauss(2.0 * (pull["arm"] == arms[1]), 1)}
                for pull in asked["pulls"]
            ]
            http.post(f"/studies/{name}/tell", json={"worker": "ann", "readings": values})


def values(server, name):
    """Return the readings of a study, in order."""
    with server.client() as http:
        rows = http.get(f"/studies/{name}/readings.csv").text.splitlines()[1:]
    return [float(row.split(",")[3]) for row in rows]


def test_two_browsers_see_a_reading_that_a_third_party_tells(browser, server):
    url = begun(server, "two", contamination=0.05)
    with opened(browser, url) as one, opened(browser, url) as other:
        for page in (one, other):
            page.wait_for_selector("text=No reading yet")
            assert "Comparing Lemon, Ginger and Mint." in page.inner_text("#summary")
            assert page.inner_text("#how-work") == f"truearm work {server.url} two -- ./measure {{arm}}"
        told(server, "two", 3)
        for page in (one, other):
            page.wait_for_selector("h1:has-text('Ginger')", timeout=20_000)
            assert page.is_hidden("#how")
            assert page.locator("#intervals .row:not(.axis)").count() == 3
            assert "48 readings" in page.inner_text("#pulls")
        one.locator("#eps").evaluate("e => {e.value = 3; e.dispatchEvent(new Event('input', {bubbles: true}))}")
        before = one.inner_text("#eps-chosen")
        told(server, "two", 1, seed=2)
        one.wait_for_selector("#pulls:has-text('64 readings')", timeout=20_000)
        assert one.inner_text("#eps-chosen") == before


def test_a_lost_connection_says_so_and_catches_up(browser, tmp_path):
    with Server(tmp_path / "studies.db") as first:
        port = int(first.url.rpartition(":")[2])
        url = begun(first, "lost")
        with opened(browser, url) as page:
            page.wait_for_selector("text=No reading yet")
            first.end()
            page.wait_for_selector("text=Connection lost", timeout=20_000)
            with Server(tmp_path / "studies.db", port=port) as second:
                told(second, "lost", 3)
                page.wait_for_selector("h1:has-text('Ginger')", timeout=20_000)
                page.wait_for_selector("text=Connection lost", state="detached", timeout=20_000)


def test_a_phone_measures_and_two_taps_are_one_reading(browser, server):
    url = begun(server, "phone")
    with measuring(browser, url, "cleo") as page:
        for typed in ("about five", "1,234", "1e999"):  # 1,234 may be one number or another
            page.fill("#value", typed)
            page.click("#send")
            page.wait_for_selector("text=A reading is a number")
            page.fill("#value", "")
        for i, typed in enumerate(("4,5", "-0,5", ",5")):
            page.fill("#value", typed)
            page.locator("#send").evaluate("e => {e.click(); e.click()}")
            page.wait_for_selector(f"text={i + 1} measured by you, cleo")
        page.wait_for_selector("#missing:enabled")
        page.click("#missing")
        page.wait_for_selector("text=4 measured by you, cleo")
    assert str(values(server, "phone")) == "[4.5, -0.5, 0.5, nan]"


def test_a_card_takes_nothing_until_the_next_pull_is_there(browser, server):
    """A reading typed while the next pull was loading was lost without a message."""
    url = begun(server, "meanwhile")
    with measuring(browser, url, "gus") as page:
        held = []

        def hold(route):  # the next pull is long in coming
            held.append(route)

        page.route("**/ask", hold)
        page.fill("#value", "4")
        page.click("#send")
        page.wait_for_selector("text=1 measured by you, gus")
        assert not page.is_editable("#value")
        assert page.is_disabled("#send")
        assert page.is_disabled("#missing")
        held[0].continue_()
        page.unroute("**/ask")
        page.fill("#value", "5")  # waits until it can be
        page.click("#send")
        page.wait_for_selector("text=2 measured by you, gus")
    assert values(server, "meanwhile") == [4.0, 5.0]


def test_two_people_of_one_name_learn_that_a_reading_was_not_counted(browser, server):
    """They see the same pull; the second reading of it is refused, and that must not vanish at once."""
    url = begun(server, "namesakes")
    with measuring(browser, url, "ann") as one, measuring(browser, url, "ann") as other:
        one.fill("#value", "4")
        other.fill("#value", "5")
        one.click("#send")
        one.wait_for_selector("text=1 measured by you, ann")
        other.click("#send")
        other.wait_for_selector("text=0 measured by you, ann")
        other.wait_for_selector("#card:visible")
        assert re.match("Not counted: .*ticket 0 ", other.inner_text("#notice"))
        assert "Is someone else using the name ann?" in other.inner_text("#notice")


def test_a_share_is_told_by_two_buttons(browser, server):
    url = begun(server, "share", arms=("Old", "New"), at_least=1)
    with opened(browser, f"{url}/next", **PHONE) as page:
        page.fill("#worker", "dan")
        page.keyboard.press("Enter")
        page.wait_for_selector("#yes-no:visible")
        page.get_by_role("button", name="Yes").click()
        page.wait_for_selector("text=1 measured by you, dan")


def test_the_form_estimates_and_starts_a_study(browser, server):
    with opened(browser, f"{server.url}/new") as page:
        page.fill("#title-in", "By the form")
        page.get_by_label("Arms, one per line").fill("A\nB")
        page.wait_for_selector("#estimate:has-text('readings in total')", timeout=20_000)
        page.get_by_label("A difference worth finding").fill("0.01")
        page.wait_for_selector("#estimate:has-text('can be found with up to')", timeout=20_000)
        first = page.inner_text("#estimate")
        page.route("**/estimate", lambda _: None)  # an answer that does not come
        page.fill("#id-in", "by-the-form")
        assert page.inner_text("#estimate") == first
        page.fill("#gap", "1.5")
        assert page.inner_text("#estimate") == "Estimating ..."
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("text=No reading yet")
        assert page.url == f"{server.url}/s/by-the-form"
        page.goto(server.url)
        page.wait_for_selector(".cards h2:has-text('By the form')")


def test_a_name_that_is_taken_is_reported_and_can_be_changed(browser, server):
    begun(server, "taken")
    for arms, message in (("A\nB", "choose another id"), ("A\nB", "This study already exists")):
        with opened(browser, f"{server.url}/new") as page:
            page.fill("#id-in", "taken" if "choose" in message else "free")
            page.fill("#title-in", "Another one")
            page.fill("#arms", arms)
            page.get_by_role("button", name="Start").click()
            page.wait_for_selector(f"#notice:has-text('{message}')")
            assert page.evaluate("document.activeElement.id") == "id-in"
            if "choose" in message:
                page.fill("#id-in", "free")
                page.get_by_role("button", name="Start").click()
            else:
                page.get_by_role("link", name="Open it").click()
            page.wait_for_url("**/s/free")


def test_a_bound_that_is_not_a_share_starts_no_study(browser, server):
    """Such a study would assume nothing about bad readings, or too much."""
    with opened(browser, f"{server.url}/new", **PHONE) as page:
        page.fill("#title-in", "Bounded")
        page.fill("#arms", "A\nB\nA")
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("#notice:has-text('Two arms are named \"A\"')")
        page.fill("#arms", "A\nB")
        for typed in ("", "five", "50"):
            page.fill("#eps", typed)
            page.get_by_role("button", name="Start").click()
            page.wait_for_selector("#notice:has-text('from 0 to below 50')")
            assert page.evaluate("document.activeElement.id") == "eps"
            assert page.locator("#notice").evaluate("e => e.getBoundingClientRect().top") >= 0  # in sight
        page.fill("#eps", "7,5 %")
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("text=No reading yet")
    definition = server.get("/studies/bounded")["definition"]
    assert definition["problem"]["contamination"]["eps"] == 0.075


def test_what_is_saved_can_be_verified(browser, server, tmp_path):
    url = begun(server, "saved")
    told(server, "saved", 400, n=1)  # one after the other: the readings alone say what each decision knew
    with opened(browser, url) as page:
        page.wait_for_selector("h1:has-text('is best')")
        with page.expect_download() as download:
            page.click("#json")
        download.value.save_as(tmp_path / download.value.suggested_filename)
    assert truearm("verify", str(tmp_path / "saved.json")).startswith("Verified:")


def test_a_study_that_does_not_exist_offers_no_action(browser, server):
    begun(server, "unasked", passive=True)
    for path, message in (
        ("/s/nowhere", "No such study"),
        ("/s/%C3%28", "No such study"),
        ("/s/%C3%28/next", "No such study"),
        ("/s/unasked/next", "Nothing to measure here"),
    ):
        with opened(browser, server.url + path, **PHONE) as page:
            if path.endswith("next"):
                page.fill("#worker", "fay")
                page.click("text=Start")
            page.wait_for_selector(f"text={message}")
            assert path.endswith("next") or not page.is_visible(".actions")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server that needs tokens, and one token of each kind."""
    path = tmp_path_factory.mktemp("guarded") / "studies.db"
    database = Database(str(path))
    tokens = {role: create_token(database, role) for role in ("admin", "worker", "viewer")}
    tokens["other"] = create_token(database, "viewer", "other")
    database.close()
    with Server(path, "--rate", "100000") as server:
        with server.client(tokens["admin"]) as http:
            http.post("/studies", json={"arms": ["A", "B"], "id": "mine", "title": "Only mine"})
        yield server, tokens


def test_a_token_that_does_not_suffice_can_be_replaced_and_nothing_typed_is_lost(browser, guarded):
    server, tokens = guarded
    with opened(browser, f"{server.url}/new#token={tokens['worker']}") as page:
        page.fill("#id-in", "typed")
        page.fill("#arms", "A\nB")
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("#token-form:has-text('needs the role admin')")
        page.fill("#token", tokens["admin"])
        page.keyboard.press("Enter")
        page.wait_for_url("**/s/typed")
    with opened(browser, f"{server.url}/s/mine#token={tokens['other']}") as page:
        page.wait_for_selector("#token-form:has-text(\"the token is for viewer of study 'other'\")")
        page.fill("#token", tokens["viewer"])
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Only mine")


def test_a_token_is_requested_and_stays_in_the_tab(browser, guarded):
    server, tokens = guarded
    with opened(browser, server.url) as page:
        page.wait_for_selector("#token")
        assert "Only mine" not in page.content()
        page.fill("#token", tokens["admin"])
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Only mine")
    with opened(browser, f"{server.url}/s/mine#token={tokens['admin']}") as page:
        page.wait_for_selector("text=No reading yet")
        assert tokens["admin"] not in page.url


@pytest.mark.parametrize(
    ("path", "token", "message"),
    [
        ("/", "ta_forged", "unknown or was removed"),
        ("/s/mine", "жетон", "not a token"),
        ("/s/mine/next", "ta_forged", "unknown or was removed"),
    ],
)
def test_an_invalid_token_is_reported_and_can_be_replaced(browser, guarded, path, token, message):
    server, tokens = guarded
    with opened(browser, f"{server.url}{path}#token={token}") as page:
        if path.endswith("next"):
            page.fill("#worker", "ann")
            page.click("text=Start")
        page.wait_for_selector(f"#token-form:has-text('{message}')")
        assert ("needs a token" if token == "ta_forged" else "onnection") not in page.inner_text("body")
        page.fill("#token", tokens["worker"])
        page.keyboard.press("Enter")
        page.wait_for_selector("#card:visible" if path.endswith("next") else "text=Only mine")
        assert page.is_hidden("#token-form")


def test_a_passive_study_continues(browser, server):
    url = begun(server, "flow", arms=("North", "South"), passive=True, contamination=0.05)
    draw = random.Random(3)

    def give(n):
        rows = [{"arm": arm, "value": draw.gauss(3 * (arm == "North"), 1)} for arm in ("North", "South") * n]
        with server.client() as http:
            http.post("/studies/flow/readings", json={"key": str(n), "readings": rows})

    card = ".cards li:has-text('About flow')"
    with opened(browser, url) as page:
        page.wait_for_selector("#how:has-text('/studies/flow/readings')")
        assert page.is_hidden("#next")
        give(3)
        page.wait_for_selector("h1:has-text('No winner yet')", timeout=20_000)
        page.goto(server.url)
        page.wait_for_selector(f"{card}:has-text('North leads')")
        assert page.inner_text(f"{card} .chip") == "running"
        give(200)
        page.wait_for_selector(f"{card}:has-text('North is best')", timeout=20_000)
        assert page.inner_text(f"{card} .chip") == "decided"


def test_a_worker_who_changes_the_name_keeps_the_pull(browser, server):
    """A pull released under another name than it was requested for stayed out."""
    url = begun(server, "renamed")
    with measuring(browser, url, "anm") as page:
        page.get_by_role("button", name="Change name").click()
        assert page.input_value("#worker") == "anm"
        page.fill("#worker", "ann")
        page.click("text=Start")
        with page.expect_response("**/ask"):
            page.click("#release")
        page.wait_for_selector("#send:enabled")
        page.fill("#value", "4")
        page.click("#send")
        page.wait_for_selector("text=1 measured by you, ann")
    with server.client() as http:
        found = http.get("/studies/renamed").json()
        rows = http.get("/studies/renamed/readings.csv").text.splitlines()[1:]
    assert [row.split(",")[4] for row in rows] == ["ann"]
    assert {out["worker"] for out in found["out"]} <= {"ann"}


UNLABELED = """() => [...document.querySelectorAll('main input, main textarea, main select')]
    .filter(e => !e.labels.length && !e.getAttribute('aria-label')).map(e => e.id)"""


@pytest.mark.parametrize(("width", "scheme"), [(320, "dark"), (390, "light"), (1280, "dark"), (1280, "light")])
def test_every_page_is_readable_and_reachable_by_keys(browser, server, scheme, width):
    name = f"looks-{scheme}-{width}"
    begun(server, name, arms=("Lemon", "a-name-without-a-single-break-" * 4, HOSTILE, "two\nlines"))
    told(server, name, 3)
    more = {"color_scheme": scheme, "viewport": {"width": width, "height": 800}}
    for path, there in (
        ("/", ".cards li"),
        ("/new", "#begin"),
        (f"/s/{name}", "#intervals"),
        (f"/s/{name}/next", "#who:visible"),
        ("/s/nowhere", "#elsewhere:visible"),
    ):
        with opened(browser, server.url + path, **more) as page:
            page.wait_for_selector(there)
            assert page.evaluate(UNLABELED) == []
            if path.endswith("next"):
                page.fill("#worker", "ida")
                page.keyboard.press("Enter")
                page.wait_for_selector("#card:visible")
            else:
                page.keyboard.press("Tab")
                assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
            if there == "#intervals":
                assert HOSTILE in page.inner_text(there)
                assert page.locator(".ticks span[data-style]").first.evaluate("e => e.style.left").endswith("%")
            assert page.locator("main img").count() == 0
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            assert min(page.evaluate(CONTRASTS))[0] >= 4.5, (path, min(page.evaluate(CONTRASTS)))
            for _ in range(4):
                page.keyboard.press("Tab")
                assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "3px", path


def truearm(*words, **more):
    command = [sys.executable, "-m", "truearm", *words]
    environment = {"PYTHONPATH": SOURCE, "PATH": "/usr/bin:/bin", **more}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_walk_needs_no_more_than_its_two_tokens(browser, tmp_path):
    """docs/service.md as it is written: tokens first, then the form, a phone, a machine and the wall."""
    path = str(tmp_path / "studies.db")
    admin, worker = (
        truearm("serve", "--database", path, "--new-token", role) for role in ("admin", "worker:taste")
    )
    with Server(path, "--host", "0.0.0.0") as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        with opened(browser, f"{url}/new#token={admin}") as page:
            page.fill("#title-in", "Which lemonade tastes best?")
            page.fill("#id-in", "taste")
            page.fill("#arms", "1\n2\n3")
            page.get_by_role("button", name="Start").click()
            page.wait_for_url("**/s/taste")
        with opened(browser, f"{url}/s/taste/next#token={worker}", **PHONE) as phone:
            phone.fill("#worker", "ann")
            phone.click("text=Start")
            phone.wait_for_selector("#card:visible")
            phone.fill("#value", "7")
            phone.click("#send")
            phone.wait_for_selector("text=1 measured by you, ann")
        truearm("work", url, "taste", "-M", "2", "--", "echo", "{arm}", TRUEARM_TOKEN=worker)
        with opened(browser, f"{url}/s/taste#token={worker}") as wall:
            wall.wait_for_selector("#pulls:has-text('3 readings')", timeout=20_000)
        with opened(browser, f"{url}/#token={worker}") as page:
            page.wait_for_selector(".cards h2:has-text('Which lemonade tastes best?')", timeout=20_000)
