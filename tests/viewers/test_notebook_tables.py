"""In a notebook values are short tables, never dumps, and names of a file are never markup."""

import re
import sys

import numpy as np
import pytest

import delassus as dl

EVIL = '<mujoco model="&lt;script&gt;alert(1)&lt;/script&gt;"><worldbody><body><freejoint/><geom size=".1"/></body></worldbody></mujoco>'


@pytest.fixture(scope="module")
def shown():
    model = dl.scenes.on_floor("go2")
    q, v = model.keyframes["home"], model.zero_velocity()
    feet = [dl.PointContact(model, b, friction=0.8) for b in range(1, model.nbody) if b not in model.body_parent[1:]]
    G = dl.DelassusOperator(model, feet)
    G.update(q)
    B = dl.BatchDelassusOperator(model, feet, 4)
    sim = dl.Simulator(model)
    sim.reset("home")
    trajectory = sim.run(0.1, every=5, progress=False)
    step = sim.step()
    linkage = dl.scenes.n_four_bar(1)
    return {
        "Model": model, "DelassusOperator": G, "BatchDelassusOperator": B, "Simulator": sim, "StepResult": step, "Contacts": step.contacts, "Trajectory": trajectory,
        "ContactResult": dl.solve_contacts(G, G.jacobian @ dl.forward_dynamics(model, q, v, v), feet),
        "DynamicsResult": dl.constrained_dynamics(model, q, v, v, feet), "Rollout": dl.rollout(model, q[None], steps=5),
        "AssemblyResult": dl.close_loops(linkage, linkage.neutral()), "Worlds": dl.Worlds(model, 3), "ContactProblem": sim.contact_problem(), "LinearizedStep": sim.linearize(),
        "ForwardDynamicsDerivatives": dl.forward_dynamics_derivatives(model, q, v, v), "OperationalSpace": dl.OperationalSpace(dl.DelassusOperator(model, feet, damping=1e-9)),
        "Explanation": G.explain(),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("Model", r"joints</th><td[^>]*>13, nq = 19, nv = 18"), ("DelassusOperator", "4 PointContact"), ("BatchDelassusOperator", "no numbers yet"), ("Simulator", "Simulator of go2_on_floor"),
        ("StepResult", "status</th><td[^>]*>solved"), ("Contacts", "sum of forces"), ("Trajectory", "all solved"), ("ContactResult", "status</th><td[^>]*>solved"),
        ("DynamicsResult", "residuals</th><td[^>]*>primal"), ("Rollout", "Rollout"), ("AssemblyResult", "status</th><td[^>]*>solved"),
        ("Worlds", "worlds</th><td[^>]*>3"), ("ContactProblem", "contacts</th>"), ("LinearizedStep", "sticking"), ("ForwardDynamicsDerivatives", r"acceleration_q</th><td[^>]*>shape \(18, 18\)"),
        ("OperationalSpace", "rows</th><td[^>]*>12"), ("Explanation", "<pre>.*12 rows"),
    ],
)  # fmt: skip
def test_tables_are_short_and_tell_what_matters(shown, kind, told):
    html = shown[kind]._repr_html_()
    assert re.search(told, html), html
    text = re.sub("<[^>]*>", " ", html)
    assert len(text) < 1500
    assert html.count("<tr>") <= 14
    assert html.count("<") == html.count(">")


def test_names_are_text():
    model = dl.load(EVIL)
    G = dl.DelassusOperator(model, [dl.PointContact(model, 1)], damping=1e-9)
    sim = dl.Simulator(model)
    for value in (model, G, G.explain(), sim, sim.run(0.01, progress=False), sim.contact_problem(), dl.Worlds(model, 2)):
        assert "<script>" not in value._repr_html_(), type(value)


def test_a_study_is_a_table_of_its_metrics():
    pytest.importorskip("pyarrow")
    result = dl.Study(dl.load(EVIL), parameters={"friction": [0.2, 0.8]}, metrics=["height"], seconds=0.02).run(path=None)
    html = result._repr_html_()
    assert re.search("rows</th><td[^>]*>2", html)
    assert re.search("statuses</th><td[^>]*>2 solved", html)
    assert re.search(r"height</th><td[^>]*>\[-?[0-9.]", html)
    assert "<script>" not in html


def test_arrays_are_told_by_shape_and_range(shown):
    html = shown["Rollout"]._repr_html_()
    q = shown["Rollout"].q
    assert f"shape {q.shape}, from {q.min():.4g} to {q.max():.4g}" in html


def test_plot_is_a_picture_in_a_notebook_and_leaves_the_backend_alone(shown, monkeypatch):
    import matplotlib

    before = matplotlib.get_backend()
    # a caller without pyplot, which other packages or this question may have loaded
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    figure = shown["Trajectory"].plot()
    assert figure._repr_png_()[:4] == b"\x89PNG"
    assert matplotlib.get_backend() == before
    drawn = figure.axes[0].lines[0].get_ydata()
    assert np.array_equal(drawn, shown["Trajectory"].kinetic_energy)


def test_view_is_a_frame_around_its_page():
    pytest.importorskip("viser")
    with dl.View(dl.scenes.chain(2), port=0) as window:
        assert f'<iframe src="{window.url}"' in window._repr_html_()
    assert "closed" in window._repr_html_()
