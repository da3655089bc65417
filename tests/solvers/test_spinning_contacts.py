"""Contacts with torsional and rolling friction: rows by finite differences of placements, forces by every method against the law itself in NumPy."""

import numpy as np
import pytest

import delassus as dl
import delassus.textbook as tb


def hull(model, rng, n=4):
    """Contacts of random bodies with the ground and with each other, of three, four and six rows."""
    names, contacts = model.body_names[1:], []
    for k in range(n):
        normal = rng.standard_normal(3)
        friction = (
            {} if k % 3 == 0 else {"torsional_friction": 0.2} if k % 3 == 1 else {"torsional_friction": 0.2, "rolling_friction": 0.04}
        )
        other = {"other": names[(2 * k + 1) % len(names)], "other_point": rng.uniform(-0.1, 0.1, 3)} if k % 2 else {}
        contacts.append(
            dl.PointContact(
                model, names[2 * k % len(names)], point=rng.uniform(-0.1, 0.1, 3), normal=normal, friction=0.7, **friction, **other
            )
        )
    return contacts


def relative_motion(model, q, v, contact, axes):
    """Velocity of the point and rotation between the two bodies along the axes, by differences of placements."""
    h, recipe = 1e-6, contact._recipe[2]
    ends = [dl.body_placements(model, dl.integrate(model, q, v, t)) for t in (h, -h)]
    lin, ang = np.zeros(3), np.zeros(3)
    for sign, body, point in zip((1, -1), recipe["bodies"], np.reshape(recipe["points"], (2, 3)), strict=True):
        if not model.body_moves[body]:
            continue
        (Ra, pa), (Rb, pb) = ((X[body][:3, :3], X[body][:3, 3]) for X in ends)
        lin += sign * ((Ra @ point + pa) - (Rb @ point + pb)) / (2 * h)
        turn = (Ra - Rb) @ ((Ra + Rb) / 2).T / (2 * h)
        ang += sign * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]) / 2
    return axes @ lin, axes @ ang


@pytest.mark.parametrize("robot", ["go2", "cassie"])
def test_rows_are_velocities_and_scaled_rotations(robot):
    rng = np.random.default_rng(3)
    model = dl.load(robot)
    q, v = model.random(rng), rng.standard_normal(model.nv)
    contacts = hull(model, rng, 6)
    G = dl.DelassusOperator(model, contacts)
    G.update(q)
    rows, first = G.jacobian @ v, 0
    for c in contacts:
        axes = np.reshape(c._recipe[2]["matrix"], (3, 3))
        lin, ang = relative_motion(model, q, v, c, axes)
        scale = np.array([c.torsional_friction, c.rolling_friction, c.rolling_friction]) / c.friction
        want = np.concatenate([lin, (scale * ang)[: c.rows - 3]])
        np.testing.assert_allclose(rows[first : first + c.rows], want, rtol=1e-6, atol=1e-7 * np.abs(v).max())
        first += c.rows
    assert first == G.shape[0]


def test_operator_and_its_inverse_are_those_of_the_dense_definition():
    rng = np.random.default_rng(5)
    model = dl.load("g1")
    q, contacts = model.random(rng), hull(model, rng, 6)
    G = dl.DelassusOperator(model, contacts, damping=1e-3)
    G.update(q)
    J = G.jacobian @ np.eye(model.nv)
    dense = J @ np.linalg.solve(dl.mass_matrix(model, q), J.T)
    assert np.abs(G.to_matrix() - dense).max() <= 1e-10 * np.abs(dense).max()
    y = rng.standard_normal(len(dense))
    x = G.solve(y)
    assert np.abs(dense @ x + 1e-3 * x - y).max() <= 1e-9
    # blocks of stiffness that are not symmetric, one for each contact
    blocks = [rng.standard_normal((c.rows, c.rows)) + 10 * np.eye(c.rows) for c in contacts]
    G.damping = blocks
    full, first = np.zeros_like(dense), 0
    for b in blocks:
        full[first : first + len(b), first : first + len(b)] = b
        first += len(b)
    x = G.solve(y)
    assert np.abs((dense + full) @ x - y).max() <= 1e-9 * np.abs(y).max()


def law(G, g, contacts, forces):
    """Largest violation of the cone's law: forces in their cone, σ_n ≥ 0, nothing bears that opens, friction against the slip [m/s]."""
    sigma, first, worst = G @ forces + g, 0, 0.0
    for c in contacts:
        f, s = forces[first : first + c.rows], sigma[first : first + c.rows]
        d = G.diagonal()[first : first + c.rows].max()
        first += c.rows
        reach, slip = c.friction * f[0], np.linalg.norm(s[1:])
        worst = max(worst, d * max(np.linalg.norm(f[1:]) - reach, -f[0]), -s[0], min(d * f[0], s[0]))
        if d * f[0] > 1e-6 and slip > 1e-6:  # it slides: f_T = −µ f_n s_T / ‖s_T‖, as far as the slip is known
            worst = max(worst, min(d, slip / reach) * np.linalg.norm(f[1:] + reach * s[1:] / slip))
    return worst


def pile(seed):
    """A random well-posed problem: J of full column rank on a few bodies."""
    rng = np.random.default_rng(seed)
    model = dl.load("g1")
    contacts = hull(model, rng, 7)
    G = dl.DelassusOperator(model, contacts)
    G.update(model.random(rng))
    return G, G.jacobian @ (2 * rng.standard_normal(model.nv)), contacts


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("method", ["auto", "admm", "newton", "interior"])
def test_solutions_obey_the_law(seed, method):
    G, g, contacts = pile(seed)
    r = dl.solve_contacts(G if method in ("auto", "admm", "newton") else G.to_matrix(), g, contacts, method=method)
    dense = G.to_matrix()
    worst = law(dense, g, contacts, r.forces)
    if r.status == "solved":
        assert worst <= 2e-4 * np.abs(g).max()
    if method == "auto":
        assert r.status == "solved"


def test_methods_agree_where_the_answer_is_unique():
    G, g, contacts = pile(1)
    velocities = {}
    for method in ("auto", "admm", "interior"):
        r = dl.solve_contacts(G.to_matrix(), g, contacts, method=method, tolerance=1e-8)
        if r.status == "solved":
            velocities[method] = r.velocities
    assert "auto" in velocities
    assert len(velocities) >= 2
    for v in velocities.values():
        np.testing.assert_allclose(v, velocities["auto"], atol=1e-5)


def test_polygons_have_no_torsional_friction():
    G, g, contacts = pile(0)
    with pytest.raises(dl.errors.ArgumentError, match="'lcp' has polygons for tangents only"):
        dl.solve_contacts(G.to_matrix(), g, contacts, method="lcp")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"friction": 0.0, "torsional_friction": 0.1}, "friction: a contact with torsional or rolling friction"),
        ({"torsional_friction": -0.1}, "torsional_friction"),
        ({"rolling_friction": np.nan}, "rolling_friction"),
    ],
)
def test_bad_coefficients_are_named(options, message):
    model = dl.load("go2")
    with pytest.raises(dl.errors.DelassusError, match=message):
        dl.PointContact(model, "FL_foot" if "FL_foot" in model.body_names else model.body_names[-1], **options)


def test_the_textbook_has_the_same_rows():
    rng = np.random.default_rng(2)
    model = dl.load("go2")
    q, contacts = model.random(rng), hull(model, rng, 4)
    G = dl.DelassusOperator(model, contacts)
    G.update(q)
    x = rng.standard_normal((G.shape[0], 1))
    pose = tb.Robot(model).at(q)
    np.testing.assert_allclose(tb.delassus_apply(pose, tb.Rows(pose, contacts), x), G @ x, atol=1e-10 * np.abs(G @ x).max())
