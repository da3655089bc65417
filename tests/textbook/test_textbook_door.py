"""Wrong input to the textbook and to ``delassus count``: typed errors that name the way out."""

import json
import subprocess
import sys

import numpy as np
import pytest

import delassus as dl
from delassus import errors
from delassus import textbook as tb

RECURSIVE = [name for name, a in tb.ALGORITHMS.items() if a.constrained and not a.any_rows]


def posed(name="cassie"):
    model = dl.load(name)
    return model, tb.Robot(model).at(model.neutral())


@pytest.mark.parametrize("name", RECURSIVE)
def test_recursive_algorithms_refuse_loops_and_joint_rows_and_say_who_takes_them(name):
    model, pose = posed()
    given = {"v": np.zeros((model.nv, 1)), "tau": np.zeros((model.nv, 1)), "damping": 1.0, "mu": 1.0}
    accepting = {a.run.__name__ for a in tb.ALGORITHMS.values() if a.any_rows and hasattr(a.run, "__name__")}
    for constraints, what in ((model.loops, "2 links"), ([dl.JointFriction(model, 1)], "a joint")):
        rows = tb.Rows(pose, constraints)
        with pytest.raises(errors.ArgumentError, match=what) as caught:
            tb.ALGORITHMS[name](pose, rows, given | {"k": np.zeros((rows.m, 1))})
        assert any(other in str(caught.value) for other in accepting)


def test_wrong_arguments():
    model, pose = posed("iiwa")
    with pytest.raises(errors.ArgumentTypeError, match=r"delassus\.load"):
        tb.Robot("iiwa")
    with pytest.raises(errors.ArgumentError, match=r"\(7,\)"):
        tb.Robot(model).at(np.zeros(6))
    with pytest.raises(errors.ArgumentError, match="'world' or 'link'"):
        tb.Rows(pose, [], axes="body")
    with pytest.raises(errors.ArgumentError, match="'replaced' or 'printed'"):
        tb.mass_matrix_inverse(pose, "best")
    with pytest.raises(errors.UnknownNameError, match="pv-osimr"):
        tb.count("pv-osimx", model)
    rows = tb.Rows(pose, [dl.Weld(model, "link7")])
    with pytest.raises(errors.ArgumentError, match="6 numbers"):
        tb.caba_osim(pose, rows, np.ones(5))
    with pytest.raises(errors.NotFiniteError):
        tb.Robot(model).at(np.full(7, np.nan))
    with pytest.raises(errors.ArgumentTypeError):
        tb.Robot(model).at("home")
    with pytest.raises(errors.ArgumentError, match="v: expected columns of 7"):
        tb.rnea(pose, np.zeros(7), np.zeros((7, 1)))
    with pytest.raises(errors.ArgumentError, match="x: expected columns of 6"):
        tb.delassus_apply(pose, rows, np.zeros((5, 1)))
    zero = np.zeros((7, 1))
    for method in (tb.prox_ltl, tb.prox_ltls, tb.prox_pv, tb.pv, tb.pv_soft, tb.pv_early, tb.constrained_aba, tb.lcaba):
        with pytest.raises(errors.ArgumentError, match="k: expected columns of 6"):
            method(pose, rows, zero, zero, zero)
    with pytest.raises(errors.ArgumentError, match="iterations"):
        tb.prox_ltl(pose, rows, zero, zero, np.zeros((6, 1)), iterations=0)


def test_missing_casadi_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)
    with pytest.raises(errors.MissingExtraError, match=r"delassus\[symbolic\]"):
        tb.count("crba", dl.load("iiwa"))


def run(*words, cwd):
    return subprocess.run(
        [sys.executable, "-c", "from delassus.cli import main; main()", "count", *words], capture_output=True, text=True, cwd=cwd
    )


def test_command_counts_and_writes(tmp_path):
    pytest.importorskip("casadi")
    done = run("pv-osim,pv-osimr", "solo", "--contact", "FL_LOWER_LEG", "--weld", "HR_LOWER_LEG", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "out.json").read_text())
    assert told["rows"] == 9
    model = dl.load("solo")
    want = tb.count("pv-osim", model, [dl.PointContact(model, "FL_LOWER_LEG"), dl.Weld(model, "HR_LOWER_LEG")])
    assert told["counts"]["pv-osim"]["total"] == want.total
    assert f"{want.total:,}" in done.stdout
    # of all algorithms, those that take loops
    done = run("all", "cassie", "--loops", "--json", "all.json", cwd=tmp_path)
    told = json.loads((tmp_path / "all.json").read_text())
    assert told["rows"] == 12
    assert set(told["counts"]) == {name for name, a in tb.ALGORITHMS.items() if a.any_rows or not a.constrained}


def test_command_fails_in_one_line(tmp_path):
    for words in (("pv-osimx", "iiwa"), ("caba-osim", "cassie", "--loops"), ("pv-osim", "iiwa", "--weld", "nobody"), ("pv-osim", "nobody")):
        done = run(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert "Error" in done.stderr
        assert "Traceback" not in done.stderr
