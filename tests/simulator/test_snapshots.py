"""Snapshots are restored only if they are whole, unchanged and of this simulation; whatever else comes is a typed error, and changes nothing."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, DelassusError, NotFiniteError, UnstableError
from delassus.simulator import snapshot as sealing

LOOPED = """<mujoco><option timestep=".001"/><worldbody><geom type="plane" size="2 2 .1"/><body pos="0 0 .4"><freejoint/><geom type="box" size=".2 .1 .05" mass="3"/>
<body pos="-.15 0 -.05"><joint axis="0 1 0" range="-60 60" frictionloss=".1"/><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".3"/>
<body name="b" pos="0 0 -.2"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .3 0 0" size=".02" mass=".4" contype="0"/></body></body>
<body name="c" pos=".15 0 -.05"><joint axis="0 1 0"/><geom type="capsule" fromto="0 0 0 0 0 -.2" size=".02" mass=".3"/></body></body></worldbody>
<equality><connect body1="b" body2="c" anchor=".3 0 0"/></equality></mujoco>"""


@pytest.fixture(scope="module")
def sim():
    """Something with contacts, loops, limits and friction in its memory."""
    made = dl.Simulator(LOOPED)
    made.run(0.4, progress=False)
    assert len(made.step().contacts) > 0
    return made


def flipped(numbers, rng, count=1):
    """Return numbers with some of their bits turned."""
    bits = numbers.copy().view(np.uint64)
    for _ in range(count):
        bits[rng.integers(len(bits))] ^= np.uint64(1) << np.uint64(rng.integers(64))
    return bits.view(np.float64)


def test_any_bit_that_changed_is_noticed(sim):
    rng, good = np.random.default_rng(0), sim.save()
    for _ in range(600):
        bad = flipped(good, rng)
        if np.array_equal(bad, good):  # 0.0 and −0.0
            continue
        with pytest.raises(DelassusError, match="snapshot"):
            sim.restore(bad)
        np.testing.assert_array_equal(sim.save(), good)


def test_numbers_that_are_sealed_anew_are_refused_or_make_a_state_that_steps(sim):
    """A checksum can be made for any numbers: behind it every size, index and length is checked too."""
    rng, good, own = np.random.default_rng(1), sim.save(), sim._identity
    state = good[sealing.HEADER :]
    outcomes = {"refused": 0, "stepped": 0}
    for k in range(1500):
        bad = flipped(state, rng, count=1 + k % 3)
        if k % 5 == 0:
            bad[rng.integers(len(bad))] = rng.choice([-1.0, 0.5, 1e9, 2.0**31, 2.0**63, 1e300, -1e300, 3.0, float(len(bad))])
        if k % 7 == 0:
            bad = bad[: rng.integers(len(bad))]
        try:
            sim.restore(sealing.seal(own, bad))
        except DelassusError:
            outcomes["refused"] += 1
            np.testing.assert_array_equal(sim.save(), good)
            continue
        assert np.isfinite(sim.q).all()
        assert np.isfinite(sim.v).all()
        try:
            step = sim.step()
            assert np.isfinite(step.q).all()
            outcomes["stepped"] += 1
        except UnstableError:  # an impulse of 1e300, say
            pass
        sim.restore(good)
    assert min(outcomes.values()) > 100


def test_snapshots_of_other_models_and_options_are_refused(sim):
    good = sim.save()
    heavier = LOOPED.replace('mass="3"', 'mass="3.1"')
    rougher = LOOPED.replace('type="box"', 'type="box" friction="0.3"')
    for text in (heavier, rougher):
        with pytest.raises(ArgumentError, match="snapshot: it belongs to another model"):
            dl.Simulator(text).restore(good)
    for options in ({"timestep": 2e-3}, {"solver": "newton"}, {"slop": 1e-4}):
        with pytest.raises(ArgumentError, match="snapshot: it was saved with another timestep, solver or other options"):
            dl.Simulator(LOOPED, **options).restore(good)
    fresh = dl.Simulator(LOOPED)
    fresh.restore(good)
    np.testing.assert_array_equal(fresh.save(), good)


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (lambda s: s[:-1], ArgumentError, "not what save"), (lambda s: np.append(s, 0.0), ArgumentError, "not what save"), (lambda s: s[:4], ArgumentError, "expected an array"),
        (lambda s: s[1:], ArgumentError, "begin differently"), (lambda s: np.where(np.arange(len(s)) == 1, 1.0, s), ArgumentError, "format 1; this version reads 5"),
        (lambda s: np.where(np.arange(len(s)) == 20, np.inf, s), NotFiniteError, "finite"), (lambda s: None, ArgumentTypeError, "got None"),
        (lambda s: "garbage", ArgumentTypeError, "real numbers"), (lambda s: [[1.0], [2.0, 3.0]], ArgumentTypeError, "snapshot"),
        (lambda s: s.astype(complex), ArgumentTypeError, "real numbers"), (lambda s: np.random.default_rng(0).standard_normal(300), ArgumentError, "begin differently"),
    ],
)  # fmt: skip
def test_what_is_no_snapshot_says_so(sim, made, error, said):
    good = sim.save()
    with pytest.raises(error, match=said):
        sim.restore(made(good))
    np.testing.assert_array_equal(sim.save(), good)


def test_a_snapshot_survives_a_file(sim, tmp_path):
    np.save(tmp_path / "moment.npy", sim.save())
    other = dl.Simulator(LOOPED)
    other.restore(np.load(tmp_path / "moment.npy"))
    assert np.array_equal(other.step().q, sim.step().q)
