"""A model is a value: written out and read back, compared, copied, printed, never changed."""

import copy
import dataclasses
import os
import pickle
import subprocess
import sys

import mujoco
import numpy as np
import pytest

import delassus as dl
from oracles.compare import agree
from oracles.trees import solid, unit

INF = np.inf
ONE = (1.0, 1.0, 1.0)


def pendulum(name="pendulum", mass=1.0, **joint):
    b = dl.ModelBuilder(name)
    b.add_body("rod", mass=mass, com=(0, 0, -0.5), inertia=(0.1, 0.1, 0.01))
    b.add_joint("rod", "hinge", axis=(0, 1, 0), **joint)
    return b.build()


def everything(seed):
    """A model that has one of each thing, added in random order, with what MuJoCo finds hard."""
    rng = np.random.default_rng(seed)
    b = dl.ModelBuilder(f"everything {seed} <&>", gravity=rng.normal(size=3))
    for k, (kinds, parent) in enumerate(
        [("free", -1), ("ball", 0), ("hinge slide", 1), ("", 2), ("slide hinge", 0), ("hinge", 4), ("", -1)]
    ):
        inertial = solid(rng) if k != 4 or seed % 2 else {}
        if k == 5:
            # a lamina, exactly on the edge of the triangle inequality, or a point
            R = dl.spatial.rotation_matrix(unit(rng, 4))
            inertial |= {"inertia": R @ np.diag([1.0, 2.0, 3.0]) @ R.T if seed % 3 else np.zeros(3)}
        name = f'b"{k}'
        b.add_body(name, f'b"{parent}' if parent >= 0 else "world", position=rng.normal(size=3), quaternion=unit(rng, 4), **inertial)
        for kind in kinds.split():
            low, high = np.sort(rng.normal(size=2))
            options = dict(zip(("armature", "damping", "friction_loss"), rng.uniform(0, 1, 3), strict=True))
            if kind in ("hinge", "slide"):
                options |= {"axis": rng.normal(size=3), "reference": rng.normal(), "stiffness": 2.0, "spring_reference": rng.normal()}
                options["range"] = [(low, high), (-INF, high), (low, INF), (low, low), (0, 0)][rng.integers(5)]
            if kind == "ball":
                options["range"] = (0, abs(high))
            if kind != "free":
                options["position"] = rng.normal(size=3)
            b.add_joint(name, kind, **options)
    for body, kind, n in (
        ("world", "plane", 3),
        *(('b"0', k, n) for k, n in dict(sphere=1, capsule=2, ellipsoid=3, cylinder=2, box=3).items()),
    ):
        b.add_shape(
            body,
            kind,
            rng.uniform(0.1, 1, n),
            position=rng.normal(size=3),
            quaternion=unit(rng, 4),
            friction=rng.uniform(),
            contype=3,
            conaffinity=5,
        )
    b.add_connect('b"1', 'b"5', point=rng.normal(size=3), other_point=rng.normal(size=3))
    b.add_connect('b"1', "world", point=rng.normal(size=3), other_point=rng.normal(size=3))
    turns = {"quaternion": unit(rng, 4), "other_quaternion": unit(rng, 4)}
    b.add_weld('b"3', 'b"6', point=rng.normal(size=3), other_point=rng.normal(size=3), **turns)
    b.add_coupling('b"2_hinge', 'b"4_slide', polynomial=rng.normal(size=5))
    b.add_coupling('b"5_hinge', polynomial=rng.normal(size=5))
    b.add_actuator('b"2_hinge', gear=rng.normal(), control_range=(-1, 2))
    b.add_actuator('b"2_slide')
    b.exclude_collision('b"1', 'b"5')
    model = b.build()
    b.add_keyframe("one", model.random(rng))
    b.add_keyframe("two", model.random(rng))
    return b.build()


def numbers_and_words(x):
    """Flatten a record or array."""
    if dataclasses.is_dataclass(x):
        x = dataclasses.astuple(x)
    if isinstance(x, (tuple, list, np.ndarray)):
        return [leaf for part in x for leaf in numbers_and_words(part)]
    return [x]


def same_record(got, want, tolerance):
    assert type(got) is type(want)
    for a, b in zip(numbers_and_words(got), numbers_and_words(want), strict=True):
        if isinstance(b, float):
            assert a == pytest.approx(b, rel=tolerance, abs=tolerance), want
        else:
            assert a == b, want


def same_model(got, want):
    assert (got.name, got.body_names, got.joint_names) == (want.name, want.body_names, want.joint_names)
    agree(got.gravity, want.gravity, 0)
    for kind in ("bodies", "loops", "actuators", "collision_excludes"):
        for a, b in zip(getattr(got, kind), getattr(want, kind), strict=True):
            same_record(a, b, 1e-12)
    for a, b in zip(got.joints, want.joints, strict=True):
        # MuJoCo keeps unit axes, no spring without stiffness
        same_record(
            a,
            dataclasses.replace(b, axis=tuple(want.joint_axis[want.joint_index(b.name)].tolist()), spring_reference=a.spring_reference),
            1e-12,
        )
    agree(got.spring_reference, want.spring_reference, 1e-15)
    # MuJoCo lists shapes body by body, colours in single precision
    by_name = {s.name: s for s in got.shapes}
    assert len(by_name) == len(want.shapes)
    for s in want.shapes:
        same_record(by_name[s.name], s, 1e-7)
        same_record(by_name[s.name].size, s.size, 1e-12)
    assert list(got.keyframes) == list(want.keyframes)
    for k, q in want.keyframes.items():
        agree(got.keyframes[k], q, 1e-15)


@pytest.mark.parametrize("make", [*dl.embedded_names(), *range(12)], ids=str)
def test_mjcf_written_and_read_back_is_the_same_model(make):
    model = dl.load(make) if isinstance(make, str) else everything(make)
    text = model.to_mjcf()
    same_model(dl.load(text), model)
    again = dl.load(text)
    agree(dl.mass_matrix(again, again.neutral()), dl.mass_matrix(model, model.neutral()), 1e-12)


def test_one_sided_and_empty_ranges_survive_mjcf():
    for bounds in [(-INF, 2.0), (0.0, INF), (1.0, 1.0), (0.0, 0.0), (-INF, INF)]:
        got = dl.load(pendulum(range=bounds).to_mjcf()).joints[0].range
        assert got == pytest.approx(bounds, rel=1e-15, abs=1e-15)


# ---- never changes --------------------------------------------------------------------------------------------------------

CHANGES = {
    "set": lambda m: setattr(m, "name", "other"),
    "set new": lambda m: setattr(m, "colour", 1),
    "delete": lambda m: delattr(m, "name"),
    "array": lambda m: m.body_mass.__setitem__(0, 2.0),
    "array in place": lambda m: np.add(m.joint_axis, 1.0, out=m.joint_axis),
    "gravity": lambda m: m.gravity.fill(0),
    "record": lambda m: setattr(m.bodies[0], "mass", 2.0),
    "tuple": lambda m: m.bodies.__setitem__(0, None),
    "keyframe": lambda m: m.keyframes.__setitem__("k", 1),
    "keyframe numbers": lambda m: m.keyframes["home"].fill(0),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_model_refuses_to_change(change):
    model = dl.load("go2")
    before = pickle.dumps(model)
    with pytest.raises((AttributeError, TypeError, ValueError)):
        CHANGES[change](model)
    assert pickle.dumps(model) == before


def test_every_public_array_is_read_only():
    model = dl.load("cassie")
    arrays = {k: v for k, v in vars(model).items() if isinstance(v, np.ndarray)}
    assert len(arrays) > 15
    assert not [k for k, v in arrays.items() if v.flags.writeable]


def test_states_are_new_arrays_each_time():
    model = dl.load("go2")
    q = model.neutral()
    q[:] = 7
    model.zero_velocity()[:] = 7
    assert model.neutral()[2] != 7
    assert not model.zero_velocity().any()


# ---- identity -------------------------------------------------------------------------------------------------------------


def test_equal_content_means_equal_models_and_hashes():
    a, b = pendulum(), pendulum()
    assert a is not b
    assert a == b
    assert hash(a) == hash(b)
    assert len({a, b, dl.load("go2"), dl.load("go2")}) == 2


DIFFERENT = {
    "name": lambda: pendulum("other"), "mass": lambda: pendulum(mass=1.0 + 1e-15), "armature": lambda: pendulum(armature=0.1),
    "range": lambda: pendulum(range=(0, 1)), "damping": lambda: pendulum(damping=1.0), "spring": lambda: pendulum(spring_reference=0.1),
}  # fmt: skip


@pytest.mark.parametrize("what", DIFFERENT)
def test_different_content_means_different_models(what):
    other = DIFFERENT[what]()
    assert other != pendulum()
    assert hash(other) != hash(pendulum())
    assert pendulum() != "pendulum"


def test_hash_is_the_same_in_another_process():
    code = "import delassus as dl; print(hash(dl.load('solo')))"
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    assert int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout) == hash(
        dl.load("solo")
    )


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, *(lambda m, p=p: pickle.loads(pickle.dumps(m, p)) for p in range(2, 6))])
@pytest.mark.parametrize("make", [lambda: dl.load("cassie"), lambda: everything(3)])
def test_copy_is_equal_and_usable(copied, make):
    model = make()
    other = copied(model)
    assert other == model
    assert hash(other) == hash(model)
    q = model.random(1)
    assert (dl.mass_matrix(other, q) == dl.mass_matrix(model, q)).all()
    assert list(other.keyframes) == list(model.keyframes)


# ---- printing and names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robot", ["go2", "cassie", "talos"])
def test_model_prints_as_a_short_aligned_table(robot):
    model = dl.load(robot)
    assert repr(model).count("\n") == 0
    for number in (model.nq, model.nv, len(model.loops)):
        assert str(number) in repr(model)
    first, header, *rows = str(model).splitlines()
    assert first == repr(model)
    shown = min(model.njoint, 40)
    column = header.index("type")
    for name, kind, row in zip(model.joint_names[:40], model.joint_type, rows[:shown], strict=False):
        assert row.split()[0] == name
        assert row[column:].startswith(kind)
    assert (len(rows) > shown) == (model.njoint > 40)
    assert len(rows) <= 41


def test_names_and_indices_find_each_other():
    model = dl.load("go2")
    for k, name in enumerate(model.body_names):
        assert model.body_index(name) == model.body_index(k) == model.body_index(np.int32(k)) == k
    for k, name in enumerate(model.joint_names):
        assert model.joint_index(name) == model.joint_index(k) == k


def test_bodies_are_depth_first_whatever_the_order_of_adding():
    tree = {"a": "world", "b": "a", "c": "b", "d": "a", "e": "world", "f": "e", "g": "d"}
    models = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        b = dl.ModelBuilder()
        for name in rng.permutation(list(tree)):
            b.add_body(str(name), tree[name], mass=1, inertia=ONE)
        for name in rng.permutation(list(tree)):
            b.add_joint(str(name), "hinge", name=f"j{name}")
        models.append(b.build())
    for model in models:
        for k in range(1, model.nbody):
            # a subtree is a range: the parent is the body before, or an ancestor of it
            ancestors, p = [], k - 1
            while p:
                ancestors.append(p)
                p = model.body_parent[p]
            assert model.body_parent[k] in (*ancestors, 0)
            assert model.joint_names[k - 1] == f"j{model.body_names[k]}"
        compiled = mujoco.MjModel.from_xml_string(model.to_mjcf())
        assert model.joint_names == tuple(compiled.joint(j).name for j in range(model.njoint))
    assert len({m.body_names for m in models}) > 1


def test_joints_of_one_body_act_in_the_order_of_adding():
    b = dl.ModelBuilder()
    b.add_joint("a", "slide", axis=(1, 0, 0))
    b.add_joint("a", "hinge", axis=(0, 0, 1))
    b.add_joint("a", "hinge", axis=(0, 0, 1))
    b.add_body("a", mass=1, com=(1, 0, 0), inertia=ONE)
    model = b.build()
    assert model.joint_names == ("a_slide", "a_hinge", "a_hinge_2")
    # slide first: the hinges do not turn its direction
    assert dl.point_position(model, [2.0, 0.3, np.pi / 2 - 0.3], "a", (1, 0, 0)) == pytest.approx([2, 1, 0], abs=1e-15)


def test_bodies_without_joints_are_fused_and_keep_their_names():
    b = dl.ModelBuilder()
    b.add_body("post", mass=5)
    b.add_body("arm", "post", position=(0, 0, 1), mass=1, inertia=ONE)
    b.add_joint("arm", "hinge", axis=(1, 0, 0))
    b.add_body("tool", "arm", position=(0, 2, 0), mass=3)
    model = b.build()
    assert (model.nv, model.depth, model.ntree, model.mass) == (1, 1, 1, 9)
    assert dl.mass_matrix(model, [0.7])[0, 0] == pytest.approx(1 + 3 * 2**2)
    assert dl.point_position(model, [np.pi / 2], "tool") == pytest.approx([0, 0, 3])


# ---- configurations -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [*dl.embedded_names(), *range(4)], ids=str)
def test_random_configurations_are_within_limits_and_repeat_by_seed(make):
    model = dl.load(make) if isinstance(make, str) else everything(make)
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = model.random(rng)
        for joint, adr in zip(model.joints, model.joint_qadr, strict=True):
            low, high = joint.range
            if joint.type in ("hinge", "slide"):
                assert low <= q[adr] <= high
            elif joint.type == "ball":
                assert max(low, 0) - 1e-9 <= np.linalg.norm(dl.spatial.logarithm(q[adr : adr + 4])) <= high + 1e-9
        dl.mass_matrix(model, q)
    assert (model.random(5) == model.random(5)).all()
    assert (model.random(5) == model.random(np.random.default_rng(5))).all()
    assert (model.random(5) != model.random(6)).any()
    assert (model.random() != model.random()).any()


@pytest.mark.parametrize("make", [*dl.embedded_names(), *range(4)], ids=str)
def test_neutral_is_mujocos_qpos0(make):
    model = dl.load(make) if isinstance(make, str) else everything(make)
    agree(model.neutral(), mujoco.MjModel.from_xml_string(model.to_mjcf()).qpos0, 1e-15)


# ---- the builder ----------------------------------------------------------------------------------------------------------


def test_inertia_may_be_given_as_six_three_or_a_matrix():
    def inertia(value):
        b = dl.ModelBuilder()
        b.add_body("a", mass=1, inertia=value)
        return b.build().body_inertia[1].tolist()

    assert (
        inertia((3, 4, 5, 0.1, 0.2, 0.3))
        == inertia([[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]])
        == [[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]]
    )
    assert inertia((3, 4, 5)) == inertia(np.diag([3, 4, 5])) == np.diag([3, 4, 5]).tolist()


def test_builder_that_goes_on_does_not_touch_what_it_built():
    b = dl.ModelBuilder()
    b.add_body("a", mass=1, inertia=ONE)
    b.add_joint("a", "hinge")
    first = b.build()
    b.add_body("b", "a", mass=1, inertia=ONE)
    b.add_joint("b", "hinge")
    assert (first.nv, b.build().nv) == (1, 2)
    assert b.build() == b.build()


def test_added_model_moves_as_alone_but_from_another_place():
    part = everything(5)
    turn, at = unit(np.random.default_rng(1), 4), np.array([1.0, 2.0, 3.0])
    b = dl.ModelBuilder("two", gravity=part.gravity)
    b.add_model(part, prefix="x/")
    b.add_model(part, prefix="y/", position=at, quaternion=turn)
    two = b.build()
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = dl.spatial.rotation_matrix(turn), at
    q = two.neutral()
    placements = dl.body_placements(two, q)
    alone = dl.body_placements(part, part.neutral())
    for k, name in enumerate(part.body_names[1:], 1):
        agree(placements[two.body_index(f"x/{name}")], alone[k], 1e-14)
        agree(placements[two.body_index(f"y/{name}")], X @ alone[k], 1e-14)
    same_model(dl.load(two.to_mjcf()), two)
    assert len(two.loops) == 2 * len(part.loops)
    # a loop to the world moves with its model
    ground = two.loops[[loop.name for loop in two.loops].index("y/connect_1")]
    agree(ground.other_point, X[:3, :3] @ part.loops[1].other_point + at, 1e-14)


def test_added_model_brings_its_list_of_what_was_left_out():
    text = '<mujoco model="m"><worldbody><body><joint/><geom size="1"/></body></worldbody><sensor><clock/></sensor></mujoco>'
    part = dl.load(text)
    b = dl.ModelBuilder()
    b.add_model(part, prefix="x_")
    assert b.build().ignored == ("x_m: 1 sensor",)
