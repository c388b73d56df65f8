"""The pages of the service in a real browser, over a real server: what a team sees."""

import random
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


def test_two_browsers_see_a_reading_that_a_third_party_tells(browser, server):
    url = begun(server, "two")
    with opened(browser, url) as one, opened(browser, url) as other:
        for page in (one, other):
            page.wait_for_selector("text=No reading yet")
        told(server, "two", 3)
        for page in (one, other):
            page.wait_for_selector("h1:has-text('Ginger')", timeout=20_000)
            assert page.locator("#intervals .row:not(.axis)").count() == 3
            assert "48 readings" in page.inner_text("#pulls")


def test_the_slider_stays_where_the_reader_left_it(browser, server):
    url = begun(server, "slide", contamination=0.05)
    told(server, "slide", 3)
    with opened(browser, url) as page:
        page.wait_for_selector("#eps")
        page.locator("#eps").evaluate("e => {e.value = 3; e.dispatchEvent(new Event('input', {bubbles: true}))}")
        before = page.inner_text("#eps-chosen")
        told(server, "slide", 1, seed=2)
        page.wait_for_selector("#pulls:has-text('64 readings')", timeout=20_000)
        assert page.inner_text("#eps-chosen") == before


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
        page.fill("#value", "about five")
        page.click("#send")
        page.wait_for_selector("text=A reading is a number")
        page.fill("#value", "4,5")
        page.locator("#send").evaluate("e => {e.click(); e.click()}")
        page.wait_for_selector("text=1 measured by you, cleo")
        page.click("#missing")
        page.wait_for_selector("text=2 measured by you, cleo")
    with server.client() as http:
        rows = http.get("/studies/phone/readings.csv").text.splitlines()
    assert [row.split(",")[3] for row in rows[1:]] == ["4.5", "nan"]


def test_a_card_takes_nothing_until_the_next_pull_is_there(browser, server):
    """What was typed meanwhile vanished, and a tap did nothing: the reading was lost without a word."""
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
    with server.client() as http:
        rows = http.get("/studies/meanwhile/readings.csv").text.splitlines()
    assert [row.split(",")[3] for row in rows[1:]] == ["4.0", "5.0"]


def test_two_people_of_one_name_are_told_that_a_reading_was_not_counted(browser, server):
    """They see the same pull; the second reading of it is refused, and that must not vanish at once."""
    url = begun(server, "namesakes")
    with opened(browser, f"{url}/next", **PHONE) as one, opened(browser, f"{url}/next", **PHONE) as other:
        for page in (one, other):
            page.fill("#worker", "ann")
            page.click("text=Start")
            page.wait_for_selector("#card:visible")
            page.fill("#value", "4" if page is one else "5")
        one.click("#send")
        one.wait_for_selector("text=1 measured by you, ann")
        other.click("#send")
        other.wait_for_selector("text=0 measured by you, ann")
        other.wait_for_selector("#card:visible")
        assert "Not counted: ticket 0" in other.inner_text("#notice")
        assert "Does somebody else here use the name ann?" in other.inner_text("#notice")


@pytest.mark.parametrize(("typed", "told_as"), [("1,234", None), ("1e999", None), ("-0,5", -0.5), (",5", 0.5)])
def test_what_may_be_two_numbers_is_not_guessed(browser, server, typed, told_as):
    url = begun(server, f"typed-{['1,234', '1e999', '-0,5', ',5'].index(typed)}")
    with measuring(browser, url, "eve") as page:
        page.fill("#value", typed)
        page.click("#send")
        page.wait_for_selector("text=A reading is a number" if told_as is None else "text=1 measured by you, eve")
    with server.client() as http:
        rows = http.get(url.replace("/s/", "/studies/") + "/readings.csv").text.splitlines()[1:]
    assert [float(row.split(",")[3]) for row in rows] == ([] if told_as is None else [told_as])


def test_a_share_is_told_by_two_buttons(browser, server):
    url = begun(server, "share", arms=("Old", "New"), at_least=1)
    with opened(browser, f"{url}/next", **PHONE) as page:
        page.fill("#worker", "dan")
        page.keyboard.press("Enter")
        page.wait_for_selector("#yes-no:visible")
        page.get_by_role("button", name="Yes").click()
        page.wait_for_selector("text=1 measured by you, dan")


def test_the_form_estimates_while_one_types_and_begins_a_study(browser, server):
    with opened(browser, f"{server.url}/new") as page:
        page.fill("#title-in", "By the form")
        page.get_by_label("Arms, one per line").fill("A\nB")
        page.wait_for_selector("#estimate:has-text('readings in all')", timeout=20_000)
        page.get_by_label("A difference worth finding").fill("0.01")
        page.wait_for_selector("#estimate:has-text('can be told up to')", timeout=20_000)
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("text=No reading yet")
        assert page.url == f"{server.url}/s/by-the-form"
        page.goto(server.url)
        page.wait_for_selector(".cards h2:has-text('By the form')")


def test_the_form_never_shows_the_estimate_of_another_question(browser, server):
    with opened(browser, f"{server.url}/new") as page:
        page.fill("#arms", "A\nB")
        page.wait_for_selector("#estimate:has-text('readings in all')", timeout=20_000)
        first = page.inner_text("#estimate")
        page.route("**/estimate", lambda _: None)  # an answer that does not come
        page.fill("#title-in", "Another title")
        assert page.inner_text("#estimate") == first
        page.fill("#gap", "1.5")
        assert page.inner_text("#estimate") == "Estimating ..."


def test_the_address_of_a_study_may_be_chosen(browser, server):
    begun(server, "taken")
    with opened(browser, f"{server.url}/new") as page:
        page.fill("#id-in", "taken")
        page.fill("#title-in", "Another one")
        page.fill("#arms", "A\nB")
        page.get_by_role("button", name="Start").click()
        page.wait_for_selector("#notice:has-text('choose another one')")
        assert page.evaluate("document.activeElement.id") == "id-in"
        page.fill("#id-in", "free")
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/s/free")


@pytest.mark.parametrize(("typed", "share"), [("", None), ("five", None), ("50", None), ("7,5 %", 0.075)])
def test_a_bound_that_is_none_begins_no_study(browser, server, typed, share):
    """Else nothing would be promised of bad readings, or too much, and nobody would know."""
    with opened(browser, f"{server.url}/new", **PHONE) as page:
        page.fill("#title-in", f"Bounded by {typed}")
        page.fill("#arms", "A\nB")
        page.fill("#eps", typed)
        page.get_by_role("button", name="Start").click()
        if share is None:
            page.wait_for_selector("#notice:has-text('from 0 to below 50')")
            assert page.evaluate("document.activeElement.id") == "eps"
            assert page.locator("#notice").evaluate("e => e.getBoundingClientRect().top") >= 0  # in sight
            return
        page.wait_for_selector("text=No reading yet")
        name = page.url.rpartition("/")[2]
    with server.client() as http:
        definition = http.get(f"/studies/{name}").json()["definition"]
    assert definition["problem"]["contamination"]["eps"] == share


def test_a_new_study_says_how_readings_come_in(browser, server):
    url = begun(server, "hints")
    with opened(browser, url) as page:
        page.wait_for_selector("#how:visible")
        assert "Comparing Lemon, Ginger and Mint." in page.inner_text("#summary")
        assert page.inner_text("#how-work") == f"truearm work {server.url} hints -- ./measure {{arm}}"
        told(server, "hints", 1)
        page.wait_for_selector("#how", state="hidden", timeout=20_000)


def test_what_is_saved_can_be_verified(browser, server, tmp_path):
    url = begun(server, "saved")
    told(server, "saved", 400, n=1)  # one after the other: the readings alone say what each decision knew
    with opened(browser, url) as page:
        page.wait_for_selector("h1:has-text('is best')")
        with page.expect_download() as download:
            page.click("#json")
        download.value.save_as(tmp_path / download.value.suggested_filename)
    words = [sys.executable, "-m", "truearm", "verify", str(tmp_path / "saved.json")]
    done = subprocess.run(
        words, env={"PYTHONPATH": SOURCE}, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout.split(":")[0]) == (0, "Verified"), done.stderr


def test_a_study_that_is_not_there_offers_nothing(browser, server):
    with opened(browser, f"{server.url}/s/nowhere") as page:
        page.wait_for_selector("h1:has-text('There is no such study')")
        assert page.inner_text("#notice") == "Check the address, or choose one of the studies."
        assert not page.is_visible(".actions")
    begun(server, "unasked", passive=True)
    with opened(browser, f"{server.url}/s/unasked/next", **PHONE) as page:
        page.fill("#worker", "fay")
        page.click("text=Start")
        page.wait_for_selector("text=Nobody is asked here")


def test_names_are_text_and_the_policy_holds(browser, server):
    url = begun(server, "hostile", arms=(HOSTILE, "two\nlines", "'\"&"))
    told(server, "hostile", 3)
    with opened(browser, url, color_scheme="dark", viewport={"width": 360, "height": 700}) as page:
        page.wait_for_selector("#intervals")
        assert page.locator("main img").count() == 0
        assert HOSTILE in page.inner_text("#intervals")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        ticks = page.locator(".ticks span[data-style]")
        assert ticks.count()
        assert ticks.first.evaluate("e => e.style.left").endswith("%")


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


def test_a_token_is_asked_for_and_stays_in_the_tab(browser, guarded):
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


@pytest.mark.parametrize("path", ["/", "/s/mine", "/s/mine/next"])
@pytest.mark.parametrize(("token", "said"), [("ta_forged", "unknown or was removed"), ("жетон", "not a token")])
def test_a_token_that_is_not_known_or_none_is_said_to_be_so(browser, guarded, path, token, said):
    server, tokens = guarded
    with opened(browser, f"{server.url}{path}#token={token}") as page:
        if path.endswith("next"):
            page.fill("#worker", "ann")
            page.click("text=Start")
        page.wait_for_selector(f"#token-form:has-text('{said}')")
        assert ("needs a token" if token == "ta_forged" else "onnection") not in page.inner_text("body")
        page.fill("#token", "ключ")
        page.keyboard.press("Enter")
        page.wait_for_timeout(300)
        assert page.is_visible("#token-form")
        page.fill("#token", tokens["worker"])
        page.keyboard.press("Enter")
        page.wait_for_selector("#card:visible" if path.endswith("next") else "text=Only mine")
        assert page.is_hidden("#token-form")


def test_one_reading_is_a_reading(browser, server):
    url = begun(server, "first")
    with server.client() as http:
        http.post("/studies/first/ask", json={"worker": "ann"})
        assert http.get("/studies/first/live").json()["answer"] == "No reading yet"
        http.post("/studies/first/tell", json={"readings": [{"ticket": 0, "value": 1}]})
        assert http.get("/studies/first/live").json()["answer"] == "Too early to tell"
    with opened(browser, url) as page:
        page.wait_for_selector("h1:has-text('Too early to tell')")
        page.goto(server.url)
        page.wait_for_selector(".cards li:has-text('About first'):has-text('Too early to tell')")


def test_a_passive_study_goes_on(browser, server):
    url = begun(server, "flow", arms=("North", "South"), passive=True, contamination=0.05)
    card = ".cards li:has-text('About flow')"
    with opened(browser, url) as page:
        page.wait_for_selector("#how:has-text('/studies/flow/readings')")
        assert page.is_hidden("#next")
        give(server, "flow", 3)
        page.wait_for_selector("h1:has-text('No winner yet')", timeout=20_000)
        page.goto(server.url)
        page.wait_for_selector(f"{card}:has-text('North leads')")
        assert page.inner_text(f"{card} .chip") == "running"
        give(server, "flow", 200)
        page.wait_for_selector(f"{card}:has-text('North is best')", timeout=20_000)
        assert page.inner_text(f"{card} .chip") == "decided"


def give(server, name, n):
    with server.client() as http:
        draw = random.Random(n)
        values = [
            {"arm": arm, "value": draw.gauss(3 * (arm == "North"), 1)}
            for _ in range(n)
            for arm in ("North", "South")
        ]
        http.post(f"/studies/{name}/readings", json={"key": str(n), "readings": values})


def test_what_ended_undecided_is_not_called_undecided_yet(browser, server):
    url = begun(server, "short", arms=("A", "B"), max_pulls=4)
    told(server, "short", 2)
    with opened(browser, url) as page:
        page.wait_for_selector("h1:has-text('Ended without a decision')")
        assert "No winner: A or B may have the highest median." in page.inner_text("#summary")
        assert "yet" not in page.inner_text("header")
        page.goto(server.url)
        page.wait_for_selector(".cards li:has-text('About short') .chip:has-text('ended')")


def test_the_same_form_again_says_that_the_study_is_there(browser, server):
    for time in ("first", "second"):
        with opened(browser, f"{server.url}/new") as page:
            page.fill("#title-in", "Sent twice")
            page.fill("#arms", "A\nB")
            page.get_by_role("button", name="Start").click()
            if time == "first":
                page.wait_for_url("**/s/sent-twice")
                continue
            page.wait_for_selector("text=This study is there already")
            assert page.evaluate("document.activeElement.id") == "id-in"
            page.get_by_role("link", name="Open it").click()
            page.wait_for_url("**/s/sent-twice")


def test_an_address_that_cannot_be_read_is_no_study(browser, server):
    for path in ("/s/%C3%28", "/s/%C3%28/next"):
        with opened(browser, server.url + path) as page:
            if path.endswith("next"):
                page.fill("#worker", "ann")
                page.click("text=Start")
            page.wait_for_selector("h1:has-text('There is no such study')")


def test_who_changes_the_name_keeps_the_pull_and_may_give_it_back(browser, server):
    """Given back under a name it was not asked for, a pull would stay out, and nobody knew."""
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


def test_older_studies_stay_when_a_look_was_under_way(browser, tmp_path):
    with Server(tmp_path / "studies.db", "--rate", "100000") as many:
        for i in range(60):
            begun(many, f"s{i:02}")
        with opened(browser, many.url) as page:
            page.wait_for_selector("#more:visible")
            held = []

            def hold(route):  # a look that is long in coming
                held.append(route)

            page.route("**/studies", hold)
            page.wait_for_timeout(3500)
            page.locator("#more").evaluate("e => {e.click(); e.click()}")
            page.wait_for_selector(".cards li:nth-child(60)")
            for route in held:
                route.continue_()
            page.wait_for_timeout(500)
            assert held
            assert page.locator(".cards li").count() == 60


def test_long_names_leave_room_for_the_rest(browser, server):
    """Names of two hundred letters filled a phone before anything could be done."""
    arms = [f"the {i}th name that somebody pasted from a table " * 4 for i in range(4)]
    url = begun(server, "wordy", arms=arms, contamination=0.2)
    told(server, "wordy", 6)
    with opened(browser, url, **PHONE) as page:
        page.wait_for_selector("h1:has-text('may still be better')")
        assert page.locator(".actions .button").first.bounding_box()["y"] < PHONE["viewport"]["height"]


def test_a_list_that_renews_itself_leaves_the_focus(browser, server):
    begun(server, "focused")
    with opened(browser, server.url) as page:
        page.wait_for_selector(".cards a[href='/s/focused']")
        page.focus(".cards a[href='/s/focused']")
        told(server, "focused", 1)
        page.wait_for_selector(".cards a[href='/s/focused']:has-text('16 readings')", timeout=20_000)
        assert page.evaluate("document.activeElement.getAttribute('href')") == "/s/focused"


def test_every_field_has_a_label_and_all_is_reached_by_keys(browser, server):
    url = begun(server, "keys")
    for path in ("/new", "/s/keys", "/s/keys/next"):
        with opened(browser, server.url + path) as page:
            page.wait_for_timeout(300)
            unnamed = """() => [...document.querySelectorAll('main input, main textarea, main select')]
                .filter(e => !e.labels.length && !e.getAttribute('aria-label')).map(e => e.id)"""
            assert page.evaluate(unnamed) == []
    with opened(browser, url) as page:
        page.wait_for_selector("text=No reading yet")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1280])
def test_every_page_can_be_read_and_the_focus_be_seen(browser, server, scheme, width):
    name = f"looks-{scheme}-{width}"
    begun(server, name, arms=("Lemon", "a-name-without-a-single-break-" * 4, HOSTILE))
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
            if path.endswith("next"):
                page.fill("#worker", "ida")
                page.keyboard.press("Enter")
                page.wait_for_selector("#card:visible")
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
