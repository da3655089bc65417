"""What the solvers cannot take they refuse by a typed error that names the argument."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, QuaternionError, UnknownNameError

MODEL = dl.load("cassie")
OTHER = dl.load("go2")
Q, V = MODEL.keyframes["home"], np.linspace(-1, 1, MODEL.nv)
LOOPS = MODEL.loops


def inverse(q=Q, v=V, a=V, constraints=LOOPS, model=MODEL, **options):
    return dl.constrained_inverse_dynamics(model, q, v, a, constraints, **options)


def impact(q=Q, v=V, constraints=LOOPS, model=MODEL, **options):
    return dl.impact(model, q, v, constraints, **options)


def close(q=Q, constraints=LOOPS, model=MODEL, **options):
    return dl.close_loops(model, q, constraints, **options)


SOLVERS = {"inverse": inverse, "impact": impact, "close": close}


def refused(error, argument, work):
    with pytest.raises(error) as caught:
        work()
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {caught.value}"
    assert str(caught.value).startswith(argument), str(caught.value)


def spoiled(a, value):
    a = a.copy()
    a[-1] = value
    return a


BAD = {
    "short": (lambda a: a[:-1], ArgumentError),
    "long": (lambda a: np.append(a, 0.0), ArgumentError),
    "column": (lambda a: a[:, None], ArgumentError),
    "nan": (lambda a: spoiled(a, np.nan), NotFiniteError),
    "inf": (lambda a: spoiled(a, np.inf), NotFiniteError),
    "complex": (lambda a: a.astype(complex), ArgumentTypeError),
    "text": (lambda a: a.astype(str), ArgumentTypeError),
    "none": (lambda a: None, ArgumentTypeError),
}
TAKES = {
    ("inverse", "q"): Q, ("inverse", "v"): V, ("inverse", "a"): V, ("impact", "q"): Q, ("impact", "v"): V, ("close", "q"): Q,
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("take", TAKES, ids=" ".join)
def test_bad_array_is_refused_by_name(take, bad):
    spoil, error = BAD[bad]
    solver, name = take
    refused(error, "acceleration:" if name == "a" else f"{name}:", lambda: SOLVERS[solver](**{name: spoil(TAKES[take])}))


@pytest.mark.parametrize("solver", SOLVERS)
def test_wrong_models_constraints_and_operators_are_refused(solver):
    run = SOLVERS[solver]
    refused(ArgumentTypeError, "model:", lambda: run(model="cassie"))
    refused(ArgumentTypeError, "model:", lambda: run(model=None))
    refused(ArgumentTypeError, "model:", lambda: run(model=None, constraints=dl.DelassusOperator(MODEL, LOOPS)))
    refused(ArgumentTypeError, "constraints:", lambda: run(constraints=3))
    refused(ArgumentTypeError, "constraints[0]:", lambda: run(constraints=[3]))
    refused(ArgumentError, "constraints[0]:", lambda: run(constraints=[dl.Connect(OTHER, 1)]))
    refused(ArgumentError, "constraints:", lambda: run(constraints=dl.DelassusOperator(OTHER, [dl.Connect(OTHER, 1)])))
    refused(ArgumentTypeError, "constraints:", lambda: run(constraints=dl.DelassusOperator(MODEL, LOOPS, dtype=np.float32)))


@pytest.mark.parametrize("solver", SOLVERS)
def test_quaternion_without_unit_length_is_refused(solver):
    q = Q.copy()
    q[3:7] *= 1.5
    refused(QuaternionError, "q", lambda: SOLVERS[solver](q=q))


@pytest.mark.parametrize("solver", ["impact", "close"])
def test_limits_of_iterations_are_checked(solver):
    run = SOLVERS[solver]
    refused(ArgumentError, "max_iterations:", lambda: run(max_iterations=0))
    refused(ArgumentTypeError, "max_iterations:", lambda: run(max_iterations=2.5))
    refused(ArgumentError, "tolerance:", lambda: run(tolerance=-1.0))
    refused(NotFiniteError, "tolerance:", lambda: run(tolerance=np.nan))


def test_restitution_and_damping_are_checked():
    contact = [dl.PointContact(MODEL, "left-foot")]
    refused(ArgumentError, "restitution:", lambda: impact(constraints=contact, restitution=-0.1))
    refused(ArgumentError, "restitution:", lambda: impact(constraints=contact, restitution=1.1))
    refused(ArgumentError, "restitution:", lambda: impact(constraints=contact, restitution=[0.1, 0.2]))
    refused(ArgumentError, "restitution:", lambda: impact(constraints=contact, restitution=[-0.5]))
    refused(NotFiniteError, "restitution:", lambda: impact(constraints=contact, restitution=[np.nan]))
    refused(NotFiniteError, "restitution:", lambda: impact(constraints=contact, restitution=np.inf))
    refused(ArgumentTypeError, "restitution:", lambda: impact(constraints=contact, restitution="much"))
    refused(ArgumentError, "damping:", lambda: impact(damping=-1.0))
    refused(ArgumentError, "damping:", lambda: impact(damping=np.ones(5)))
    refused(ArgumentError, "damping:", lambda: impact(damping=0.0))


def test_what_is_actuated_is_checked():
    refused(ArgumentTypeError, "actuated:", lambda: inverse(actuated="hip"))
    refused(ArgumentTypeError, "actuated:", lambda: inverse(actuated=3))
    refused(ArgumentError, "actuated[1]:", lambda: inverse(actuated=[0, MODEL.nv]))
    refused(ArgumentError, "actuated[0]:", lambda: inverse(actuated=[-1]))
    refused(ArgumentTypeError, "actuated[0]:", lambda: inverse(actuated=[1.0]))
    refused(ArgumentTypeError, "actuated[0]:", lambda: inverse(actuated=np.ones(MODEL.nv, dtype=bool)))
    with pytest.raises(UnknownNameError, match="left-knee"):
        inverse(actuated=["left-kne"])
    refused(ArgumentError, "minimize:", lambda: inverse(minimize="effort"))
    refused(ArgumentError, "rank_tolerance:", lambda: inverse(rank_tolerance=-1.0))
    refused(ArgumentError, "external_forces:", lambda: inverse(external_forces=np.zeros((2, 6))))


def test_inequalities_are_nothing_to_close():
    limit, friction = dl.JointLimit(MODEL, "left-knee"), dl.JointFriction(MODEL, "left-knee", 1.0)
    refused(ArgumentError, "constraints[0]:", lambda: close(constraints=[limit]))
    refused(ArgumentError, "constraints[4]:", lambda: close(constraints=[*LOOPS, friction]))


def test_operational_space_takes_an_operator_and_a_whole_number():
    G = dl.DelassusOperator(MODEL, LOOPS)
    refused(ArgumentTypeError, "G:", lambda: dl.OperationalSpace(MODEL))
    refused(ArgumentTypeError, "G:", lambda: dl.OperationalSpace(dl.BatchDelassusOperator(MODEL, LOOPS, 2)))
    refused(ArgumentError, "iterations:", lambda: dl.OperationalSpace(G, iterations=0))
    refused(ArgumentTypeError, "iterations:", lambda: dl.OperationalSpace(G, iterations=1.5))
    G.update(Q)
    refused(ArgumentError, "damping:", lambda: dl.OperationalSpace(G).inertia @ np.ones(12))


def test_arguments_are_not_written_to_and_results_are_new():
    q, v, a = (x.copy() for x in (Q, V, V))
    for x in (q, v, a):
        x.setflags(write=False)
    assert inverse(q, v, a).torques is not a
    assert impact(q, v).velocity is not v
    assert impact(q, v, constraints=[]).velocity is not v
    assert close(q).configuration is not q
