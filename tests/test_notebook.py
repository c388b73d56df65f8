"""A result in a notebook: it draws itself, and goes into a frame and onto a page."""

import sys

import pytest
from jupyter_client import KernelManager

import truearm as ta
from reference import count_tapes
from truearm.errors import InvalidArgument
from truearm.report.pages import result_in


@pytest.fixture(scope="module")
def found():
    return ta.analyze({"A": range(100), "B": range(60, 160), "<C>": range(55, 155)})


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_result_goes_into_a_frame(found, backend):
    frame = found.to_frame(backend)
    table = (
        frame.to_pydict() if backend == "pyarrow" else {name: list(frame[name]) for name in ("name", "standing")}
    )
    assert table["name"] == ["A", "B", "<C>"]
    assert table["standing"] == ["excluded", "candidate", "candidate"]


def test_a_frame_whose_library_is_not_there_says_what_helps(found, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ta.OutOfReach) as caught:
        found.to_frame("polars")
    said = 'needs polars; install it with: pip install polars, or call to_frame("pandas") or to_frame("pyarrow")'
    assert said in str(caught.value)


def test_a_result_goes_onto_a_page(found, tmp_path):
    found.save_html(tmp_path / "page.html")
    again = ta.Result.from_dict(found.to_dict())
    assert result_in((tmp_path / "page.html").read_text(encoding="utf-8")).to_dict() == again.to_dict()
    with pytest.raises(InvalidArgument, match="does not contain its readings"):
        again.save_html(tmp_path / "page.html")
    counted = ta.analyze(count_tapes({"A": range(100, 300), "B": range(200)}))
    counted.save_html(tmp_path / "counts.html")
    assert "<h1>A is best</h1>" in (tmp_path / "counts.html").read_text(encoding="utf-8")


CELLS = """
import itertools, time, truearm as ta
clock = itertools.count()
time.monotonic = lambda: next(clock) / 5  # each look at the clock is late enough to draw
draw = itertools.cycle(range(7))
ta.find_best({"<A>": lambda: next(draw), "B": lambda: 9.0 + next(draw)}, seed=1)
"""


@pytest.fixture(scope="module")
def printed():
    """What a real kernel sends to its notebook while the cells run, in order."""
    manager = KernelManager()
    manager.kernel_spec.argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    sent = []
    try:
        client.wait_for_ready(timeout=60)
        reply = client.execute_interactive(CELLS, output_hook=sent.append, timeout=120)
        assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return sent


def test_progress_is_drawn_in_a_notebook_and_taken_away(printed):
    drawn = [m["content"]["data"]["text/html"] for m in printed if m["msg_type"] == "update_display_data"]
    assert "starting" in drawn[0]
    assert any("<progress" in shown and "B leads, 2 left" in shown for shown in drawn)
    assert drawn[-1] == ""
    assert all("<A>" not in shown for shown in drawn)
    places = [m["content"]["transient"]["display_id"] for m in printed if "transient" in m["content"]]
    assert len({place for place in places if place}) == 1


def test_a_notebook_shows_the_result_and_nothing_else(printed):
    assert [m["content"]["text"] for m in printed if m["msg_type"] == "stream"] == []
    (shown,) = (m["content"]["data"]["text/html"] for m in printed if m["msg_type"] == "execute_result")
    assert "B has the highest median" in shown
