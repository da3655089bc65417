"""A bad value is refused at the door of every function by a typed error that names the argument."""

import numpy as np
import pytest

import delassus as dl
from delassus.errors import ArgumentError, ArgumentTypeError, NotFiniteError, QuaternionError, UnknownNameError
from oracles.calls import CALLS, WITH_OUT, values

MODEL = dl.load("go2")
QUATERNION = slice(3, 7)

# arguments that may be left out, by giving None
OPTIONAL = {"tau", "external_forces", "point"}

CASES = [pytest.param(call, argument, id=f"{name}-{argument}") for name, call in CALLS.items() for argument in call.arrays]


def spoiled(array, value):
    array = array.copy()
    array.flat[-1] = value
    return array


BAD_ARRAYS = {
    "one entry too few": (lambda a: a[:-1], ArgumentError),
    "one axis too many": (lambda a: a[None, None], ArgumentError),
    "a scalar": (lambda a: 1.0, ArgumentError),
    "nan": (lambda a: spoiled(a, np.nan), NotFiniteError),
    "inf": (lambda a: spoiled(a, np.inf), NotFiniteError),
    "minus inf": (lambda a: spoiled(a, -np.inf), NotFiniteError),
    "complex": (lambda a: a.astype(complex), ArgumentTypeError),
    "text": (lambda a: a.astype(str), ArgumentTypeError),
    "object": (lambda a: a.astype(object), ArgumentTypeError),
    "bool": (lambda a: a.astype(bool), ArgumentTypeError),
    "ragged": (lambda a: [[1.0, 2.0], [3.0]], ArgumentTypeError),
    "a dict": (lambda a: {}, ArgumentTypeError),
}


def refused(call, given, argument, error, where=MODEL):
    with pytest.raises(error, match=argument) as caught:
        call(where, given)
    assert type(caught.value) is error, f"{type(caught.value).__name__}: {caught.value}"
    assert str(caught.value).startswith(f"{argument}:"), str(caught.value)


@pytest.mark.sampled
@pytest.mark.parametrize("bad", BAD_ARRAYS)
@pytest.mark.parametrize(("call", "argument"), CASES)
def test_bad_array_is_refused_by_name(call, argument, bad):
    spoil, error = BAD_ARRAYS[bad]
    given = values(MODEL)
    refused(call, given | {argument: spoil(given[argument])}, argument, error)


@pytest.mark.parametrize(("call", "argument"), [case for case in CASES if case.values[1] not in OPTIONAL])
def test_none_is_refused_by_name(call, argument):
    refused(call, values(MODEL) | {argument: None}, argument, ArgumentTypeError)


@pytest.mark.parametrize("scale", [0.0, 0.999, 1.001, 2.0, -0.5])
@pytest.mark.parametrize(
    ("call", "argument"), [case for case in CASES if case.values[1].startswith("q") and case.values[0] is not CALLS["normalize"]]
)
def test_quaternion_of_another_length_is_refused_with_its_place(call, argument, scale):
    given = values(MODEL)
    q = given[argument].copy()
    q[QUATERNION] *= scale
    with pytest.raises(QuaternionError, match=rf"{argument}: .*{argument}\[3:7\].*length 1.*delassus.normalize"):
        call(MODEL, given | {argument: q})


@pytest.mark.parametrize("length", [1.0, 1e-3, 40.0, 1e-180, 1e180])
def test_normalize_divides_the_length_out(length):
    q = MODEL.random(1)
    long = q.copy()
    long[QUATERNION] *= length
    # one division a number
    np.testing.assert_allclose(dl.normalize(MODEL, long), q, rtol=1e-15)


def test_normalize_refuses_a_quaternion_of_zero():
    q = MODEL.neutral()
    q[QUATERNION] = 0
    with pytest.raises(QuaternionError, match=r"q\[3:7\] is zero"):
        dl.normalize(MODEL, q)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("where", [None, "go2", 3, np.zeros(3), dl.Model], ids=["None", "str", "int", "array", "class"])
def test_what_is_no_model_is_refused_by_name(call, where):
    refused(call, values(MODEL), "model", ArgumentTypeError, where)


@pytest.mark.parametrize(("body", "error"), [
    ("no such body", UnknownNameError), (-1, ArgumentError), (MODEL.nbody, ArgumentError), (1.0, ArgumentTypeError), (None, ArgumentTypeError),
    (True, ArgumentTypeError),
])  # fmt: skip
@pytest.mark.parametrize("name", [name for name, call in CALLS.items() if "body" in call.arguments])
def test_body_that_does_not_exist_is_refused(name, body, error):
    with pytest.raises(error, match="body") as caught:
        CALLS[name](MODEL, values(MODEL) | {"body": body})
    assert type(caught.value) is error


@pytest.mark.parametrize(("dt", "error"), [
    (np.nan, NotFiniteError), (np.inf, NotFiniteError), (None, ArgumentTypeError), ("1", ArgumentTypeError), (1j, ArgumentTypeError), (np.ones(2), ArgumentError),
])  # fmt: skip
def test_time_that_is_no_number_is_refused(dt, error):
    refused(CALLS["integrate"], values(MODEL) | {"dt": dt}, "dt", error)


def empty(shape, dtype=np.float64):
    return np.empty(shape, dtype)


def read_only(shape):
    out = np.empty(shape)
    out.setflags(write=False)
    return out


BAD_OUTS = {
    "too short": (lambda shape: empty((shape[0] - 1, *shape[1:])), ArgumentError),
    "flat": (lambda shape: empty((*shape, 1)), ArgumentError),
    "strided": (lambda shape: empty((*shape[:-1], 2 * shape[-1]))[..., ::2], ArgumentError),
    "read-only": (read_only, ArgumentError),
    "other precision": (lambda shape: empty(shape, np.float32), ArgumentTypeError),
    "integers": (lambda shape: empty(shape, np.int64), ArgumentTypeError),
    "big-endian": (lambda shape: empty(shape, ">f8"), ArgumentTypeError),
    "a list": (lambda shape: empty(shape).tolist(), ArgumentTypeError),
    "text": (lambda shape: "out", ArgumentTypeError),
}


@pytest.mark.parametrize("bad", BAD_OUTS)
@pytest.mark.parametrize("name", WITH_OUT)
def test_unfit_out_is_refused(name, bad):
    call, (make, error) = CALLS[name], BAD_OUTS[bad]
    out = make(call.out_shape(MODEL))
    with pytest.raises(error, match=r"^out: expected a writeable C-contiguous NumPy array of shape") as caught:
        call(MODEL, values(MODEL), out=out)
    assert type(caught.value) is error


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("form", [
    lambda a: a.tolist(),
    lambda a: np.stack([a, a], axis=-1)[..., 0],
    lambda a: np.asfortranarray(a),
    lambda a: a.astype(">f8"),
    lambda a: a.astype(np.longdouble).astype(float),
], ids=["list", "strided", "fortran", "big-endian", "copy"])  # fmt: skip
def test_numbers_in_any_form_give_the_same_bits(name, form):
    call, given = CALLS[name], values(MODEL)
    formed = {k: form(a) if isinstance(a, np.ndarray) else a for k, a in given.items()}
    assert np.array_equal(call(MODEL, formed), call(MODEL, given))


def test_numbers_too_large_for_single_precision_are_refused():
    given = values(MODEL)
    given["v"][0] = 1e300
    with np.errstate(over="ignore"), pytest.raises(NotFiniteError, match=r"^v:"):
        dl.bias_forces(dl.Workspace(MODEL, np.float32), given["q"], given["v"])


@pytest.mark.parametrize("dtype", ["float16", int, complex, "no dtype", None.__class__])
def test_workspace_of_another_precision_is_refused(dtype):
    with pytest.raises(ArgumentTypeError, match=r"^dtype: expected float64 or float32"):
        dl.Workspace(MODEL, dtype)


@pytest.mark.parametrize("where", [None, "go2", 3])
def test_workspace_of_no_model_is_refused(where):
    with pytest.raises(ArgumentTypeError, match=r"^model: "):
        dl.Workspace(where)


@pytest.mark.parametrize("name", ["inverse_dynamics", "bias_forces", "forward_dynamics", "kinetic_energy", "frame_bias_acceleration"])
def test_overflow_is_an_error_not_a_number(name):
    given = values(MODEL)
    with pytest.raises(dl.errors.SingularError, match="not finite"):
        CALLS[name](MODEL, given | {"v": given["v"] * 1e200})
