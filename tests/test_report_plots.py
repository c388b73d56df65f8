import builtins
import sys

import numpy as np
import pytest

from truearm import OutOfReach, Study, plan

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

from truearm.report import plots


def study(arms=("A", "B", "C"), goal="max", **problem):
    draw = np.random.default_rng(2)
    found = Study(arms, goal=goal, **problem)
    while counts := found.ask_counts():
        worse = {arm: found.problem.sign * arms.index(arm) for arm in counts}
        found.tell_arrays({arm: draw.normal(10 - worse[arm], size=n) for arm, n in counts.items()})
    return found


@pytest.fixture(scope="module")
def done():
    return study()


@pytest.fixture
def ax():
    return Figure().add_subplot()


def test_intervals_are_drawn_where_the_result_has_them(done, ax):
    assert plots.intervals(done.result, ax) is ax
    arm = done.result.arms[0]
    assert ax.lines[0].get_xdata().tolist() == [arm.low, arm.high]
    assert ax.patches[0].get_x() == pytest.approx(arm.contamination_low)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["A", "B", "C"]


def test_excluded_arms_have_an_open_bar(done, ax):
    plots.intervals(done.result, ax)
    filled = [bar.get_facecolor()[3] > 0 for bar in ax.patches]
    assert filled == [True, False, False]


def test_the_threshold_is_drawn_with_the_evidence(done, ax):
    plots.evidence_over_time(done.result, done.readings, ax)
    heights = [line.get_ydata()[0] for line in ax.lines if line.get_label() == "threshold"]
    assert heights == [pytest.approx(done.result.certificate.log_threshold / np.log(10))]


def test_the_quality_curve_has_the_points_of_the_result(done, ax):
    plots.quality(done.result, ax)
    assert sorted(zip(*ax.lines[0].get_data(), strict=True)) == sorted(done.result.quality)


def test_readings_are_drawn_thinned(done, ax):
    plots.readings_strip(done.result, done.readings, ax)
    drawn = sum(line.get_xdata().size for line in ax.lines[:2])
    assert 0 < drawn <= min(300, done.result.pulls["A"])


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_a_sheet_is_written(done, tmp_path, ending):
    path = plots.save(done.result, done.readings, tmp_path / f"sheet.{ending}")
    assert path.stat().st_size > 5_000


def test_the_panels_of_a_sheet_fill_it(done, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        Figure, "savefig", lambda figure, *_, **__: (figure.draw_without_rendering(), seen.append(figure))
    )
    plots.save(done.result, done.readings, tmp_path / "sheet.png")
    assert min(axes.get_position().width for axes in seen[0].axes) > 0.35


def test_names_are_not_read_as_formulas(tmp_path):
    odd = study(("$x", "$\\frac{$", "a\x00_b"), goal="min", contamination=None)
    plots.save(odd.result, odd.readings, tmp_path / "odd.png")


def test_a_study_without_readings_makes_empty_pictures(tmp_path):
    empty = Study(["A", "B"])
    empty.stop()
    plots.save(empty.result, empty.readings, tmp_path / "empty.png")


def test_new_axes_are_made_when_none_are_given(done):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    plots.intervals(done.result)
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")


def test_without_matplotlib_the_error_says_what_to_install(done, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest):
        if name.split(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(OutOfReach, match=r"truearm\[plot\]"):
        plots.quality(done.result)


def test_a_plan_without_a_way_says_so(recwarn):
    ax = plots.pulls(plan(pilot={"A": [1.0] * 200, "B": [1.0] * 200}), Figure().add_subplot())
    assert [text.get_text() for text in ax.texts] == ["contamination hides every gap"]
    assert not recwarn.list
