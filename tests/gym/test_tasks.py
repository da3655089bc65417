"""Tasks keep Gymnasium's contract, and reward what they say they do."""

import numpy as np
import pytest

import delassus as dl

gymnasium = pytest.importorskip("gymnasium", exc_type=ImportError)
from gymnasium.utils.env_checker import check_env  # noqa: E402

from delassus.gym import TASKS, ArmPush, WorldEnv, WorldsEnv  # noqa: E402
from delassus.gym.rotations import compose, from_rotation_vectors, rotate, rotate_back, tilt_cosine  # noqa: E402
from delassus.spatial import rotation_matrix  # noqa: E402

every = pytest.mark.parametrize("name", TASKS)


@every
@pytest.mark.filterwarnings("ignore:.*Box observation space", "ignore:.*not have any render modes")
def test_checker_of_gymnasium_is_content(name):
    env = gymnasium.make(f"delassus/{name}-v0").unwrapped
    check_env(env, skip_render_check=True)


@every
def test_single_environment_is_a_world_of_many_bit_for_bit(name):
    many, one = WorldsEnv(name, 3, threads=2), WorldEnv(name)
    rng = np.random.default_rng(0)
    observations, _ = many.reset(seed=5)
    observation, _ = one.reset(seed=6)
    assert observations.dtype == np.float32
    assert observations in many.observation_space
    np.testing.assert_array_equal(observation, observations[1])
    for _ in range(15):
        actions = many.single_action_space.sample()[None] * rng.uniform(0, 1, (3, 1)).astype(np.float32)
        observations, rewards, terminated, *_ = many.step(actions)
        observation, reward, failed, *_ = one.step(actions[1])
        np.testing.assert_array_equal(observation, observations[1])
        assert (reward, failed) == (rewards[1], terminated[1])


@every
def test_seed_decides_the_start_and_the_next_ones(name):
    env = WorldsEnv(name, 2)
    first, second = env.reset(seed=1)[0], env.reset()[0]
    other = env.reset(seed=4)[0]
    np.testing.assert_array_equal(env.reset(seed=1)[0], first)
    np.testing.assert_array_equal(env.reset()[0], second)
    for a, b in ((first, second), (first, other), (first[:1], first[1:])):
        assert (np.abs(a - b).max(axis=1) > 1e-4).all()


@every
def test_random_actions_stay_finite_and_time_is_up_in_time(name):
    env = WorldsEnv(name, 4, max_episode_steps=30, autoreset_mode="SameStep")
    env.reset(seed=0)
    env.action_space.seed(0)
    steps, unsolved = np.zeros(4, dtype=int), 0
    for _ in range(60):
        observation, reward, terminated, truncated, infos = env.step(env.action_space.sample())
        steps += 1
        assert np.isfinite(observation).all()
        assert np.isfinite(reward).all()
        np.testing.assert_array_equal(truncated, steps == 30)
        steps[terminated | truncated] = 0
        unsolved += (infos["status"] > 0).sum()
    assert unsolved <= 0.1 * 4 * 60
    # gymnasium.make says the same by its own wrapper
    single = gymnasium.make(f"delassus/{name}-v0", max_episode_steps=2)
    single.reset(seed=0)
    single.action_space.seed(0)
    assert [single.step(single.action_space.sample())[3] for _ in range(2)] == [False, True]


# ---- rewards ------------------------------------------------------------------------------------------------------------------


def returns(name, policy, steps, **options):
    """Mean over worlds of the return of an episode, which ends where it fails; policy is a function of (environment, step)."""
    env = WorldsEnv(name, 4, autoreset_mode="Disabled", **options)
    env.reset(seed=3)
    total, alive = np.zeros(4), np.ones(4, dtype=bool)
    for k in range(steps):
        _, reward, terminated, _, _ = env.step(np.broadcast_to(policy(env, k), env.action_space.shape))
        total += reward * alive
        alive &= ~terminated
    return total.mean(), env


def nothing(env, k):
    return 0.0


def test_walking_is_worth_more_than_standing_and_that_more_than_going_back():
    phase = np.tile([0.0, np.pi, np.pi, 0.0], (3, 1)).T.ravel()  # diagonal legs swing in turn; FL, FR, RL, RR: hip, thigh, calf

    def trot(env, k, way=1):
        turn = way * 2 * np.pi * 3.0 * 0.02 * k + phase
        return np.tile([0.0, 0.95, 0.8], 4) * np.sin(turn + np.tile([0.0, 0.0, 1.2], 4)) + np.tile([0.0, 0.3, 0.0], 4)

    (walked, env), (stood, _), (back, _) = (returns("Go2Walk", p, 100) for p in (trot, nothing, lambda env, k: trot(env, k, -1)))
    assert env.worlds.q[:, 0].min() > 0.5
    assert walked > stood + 30
    assert stood > back + 5


def test_standing_up_is_worth_more_than_lying():
    (rose, env), (lay, down) = (
        returns("Go2StandUp", p, 100) for p in (lambda env, k: (env.task.standing[env.task.at] - env.task.nominal) / 1.2, nothing)
    )
    assert rose > 80
    assert lay < 35
    assert env.worlds.q[:, 2].min() > 0.25
    assert down.worlds.q[:, 2].max() < 0.15


def test_balance_is_worth_more_than_a_fall():
    (stood, env), (fell, fallen) = (returns("G1Balance", p, 60, push=0.1) for p in (nothing, lambda env, k: 1.0))
    assert env.worlds.q[:, 2].min() > 0.75
    assert stood > 55
    assert fell < 50
    assert fallen.worlds.q[:, 2].max() < 0.6


def test_hop_is_worth_more_than_standing_and_loops_stay_closed():
    def hop(env, k):
        crouch, push = np.tile([0.0, 0.0, 0.15, -0.35, -0.15], 2), np.tile([0.0, 0.0, -0.05, 1.0, 0.5], 2)
        return 0.0 if k < 10 else crouch if k < 30 else push if k < 36 else 0.0

    (hopped, env), (stood, _), (fell, _) = (
        returns("CassieHop", p, 50) for p in (hop, nothing, lambda env, k: np.tile([0, 0, 0, -1.0, 0], 2))
    )
    assert hopped > stood + 20
    assert stood > fell + 2
    for k in range(4):
        assert max(np.abs(dl.constraint_error(env.task.model, env.worlds.q[k], [loop])).max() for loop in env.task.model.loops) < 1e-4


def test_pushing_forwards_is_worth_more_than_drawing_back():
    def push(sign):
        env = WorldsEnv("ArmPush", 1)
        env.reset(seed=0)
        J = dl.point_jacobian(env.task.model, env.worlds.q[0], "link7", (0.0, 0.0, 0.2))[:3, env.task.rate]
        way = np.linalg.lstsq(J, [sign * 0.2, 0.0, 0.0], rcond=None)[0] / 0.6
        return returns("ArmPush", lambda env, k: min(k / 60, 1.0) * way, 100)

    (pushed, env), (drew, still) = push(1.0), push(-1.0)
    assert pushed > drew + 10
    assert (env.worlds.q[:, env.task.box] > 0.68).all()
    np.testing.assert_allclose(still.worlds.q[:, env.task.box], 0.62, atol=1e-4)


def test_lifting_is_worth_more_than_waiting():
    def lift(env, k):
        aside = env.worlds.q[:, [env.task.box]] / 0.08 if k < 40 else env._batch.action[:, :1]
        up, grip = (-1.0, 1.0) if k < 40 else (-1.0, -1.0) if k < 60 else (1.0, -1.0)
        return np.concatenate([aside, np.full((4, 1), up), np.full((4, 1), grip)], axis=1)

    (lifted, env), (waited, _) = (returns("GripperLift", p, 110) for p in (lift, nothing))
    assert (env.worlds.q[:, env.task.box + 2] > 0.15).all()
    assert lifted > waited + 20


# ---- what tasks compute, against single states --------------------------------------------------------------------------------


def test_rotations_of_rows_are_those_of_matrices():
    rng = np.random.default_rng(0)
    a, b, x = (rng.standard_normal((6, n)) for n in (4, 4, 3))
    a, b = (q / np.linalg.norm(q, axis=1, keepdims=True) for q in (a, b))
    R, S = (np.array([rotation_matrix(row) for row in q]) for q in (a, b))
    np.testing.assert_allclose(rotate(a, x), np.einsum("nij,nj->ni", R, x), atol=1e-14)
    np.testing.assert_allclose(rotate_back(a, x), np.einsum("nji,nj->ni", R, x), atol=1e-14)
    np.testing.assert_allclose([rotation_matrix(row) for row in compose(a, b)], R @ S, atol=1e-14)
    np.testing.assert_allclose(tilt_cosine(a), R[:, 2, 2], atol=1e-14)
    model = dl.scenes.box_stack(1)
    q = np.array([dl.integrate(model, model.neutral(), [0, 0, 0, *row]) for row in x])[:, 3:7]
    np.testing.assert_allclose(from_rotation_vectors(x), q, atol=1e-14)
    np.testing.assert_array_equal(from_rotation_vectors(np.zeros((2, 3))), [[1, 0, 0, 0]] * 2)


def test_tip_of_the_rod_is_where_the_model_has_it():
    task = ArmPush()
    q = np.array([task.model.random(k) for k in range(5)])
    want = [dl.point_position(task.model, row, "link7", (0.0, 0.0, 0.2)) for row in q]
    np.testing.assert_allclose(task.tip(q), want, atol=1e-13)


def test_legged_robots_see_the_vertical_and_velocities_in_their_own_axes():
    env = WorldsEnv("Go2Walk", 3)
    env.reset(seed=0)
    rng, w = np.random.default_rng(0), env.worlds
    w.q[:] = [env.task.model.random(rng) for _ in range(3)]
    w.v[:] = rng.standard_normal(w.v.shape)
    seen = env.task.observe(env._batch)
    for k in range(3):
        R = rotation_matrix(w.q[k, 3:7])
        np.testing.assert_allclose(seen[k, :1], w.q[k, 2])
        np.testing.assert_allclose(seen[k, 1:4], -R[2], atol=1e-14)
        np.testing.assert_allclose(seen[k, 4:7], R.T @ w.v[k, :3], atol=1e-14)
        np.testing.assert_allclose(seen[k, 7:10], 0.25 * w.v[k, 3:6])
        np.testing.assert_allclose(seen[k, 10:34], [*(w.q[k, 7:] - env.task.home[7:]), *(0.1 * w.v[k, 6:])])


def test_servos_pull_like_springs_and_dampers_within_the_range_of_the_motor():
    model = WorldEnv("Go2StandUp").task.model
    for actuator, motor in zip(model.actuators, dl.load("go2").actuators, strict=True):
        assert (actuator.joint, actuator.gain, actuator.bias) == (motor.joint, 40.0, (0.0, -40.0, -1.0))
        assert actuator.force_range == motor.control_range
    model = WorldEnv("CassieHop").task.model
    for actuator, motor in zip(model.actuators, dl.load("cassie").actuators, strict=True):
        np.testing.assert_allclose(actuator.force_range, np.multiply(motor.gear, motor.control_range))
