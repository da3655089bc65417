"""Environments keep Gymnasium's contract, and what happens in them is what the simulator does."""

import subprocess
import sys

import numpy as np
import pytest

import delassus as dl

gymnasium = pytest.importorskip("gymnasium", exc_type=ImportError)
from gymnasium.utils.env_checker import check_env  # noqa: E402

from delassus.gym import Go2Env, SimulatorEnv, register  # noqa: E402

SLIDER = """<mujoco><option timestep=".001"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/><geom size="0.1" mass="2"/></body></worldbody>
<actuator><motor joint="x" ctrlrange="{low} {high}"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    "make",
    [
        lambda: Go2Env(render_mode="rgb_array"),
        lambda: Go2Env("stand"),
        lambda: SimulatorEnv("iiwa"),
        lambda: SimulatorEnv("cassie", noise=0.01),
    ],
)
@pytest.mark.filterwarnings("ignore:.*Box observation space", "ignore:.*not have any render modes")
def test_checker_of_gymnasium_is_content(make):
    env = make()
    check_env(env, skip_render_check=env.render_mode is None)


def test_action_drives_the_motor_through_its_range():
    # range −1 … 3 N, action 0.5: 2 N on 2 kg for 0.1 s, symplectic Euler: x = ½ a t (t + dt)
    env = SimulatorEnv(SLIDER.format(low=-1, high=3), frame_skip=10, timestep=0.01)
    env.reset(seed=0)
    observation, *_ = env.step(np.array([0.5]))
    np.testing.assert_allclose(observation, [0.5 * 0.1 * 0.11, 0.1], rtol=1e-12)
    # beyond the ends it is cut
    env.reset(seed=0)
    cut, *_ = env.step(np.array([7.0]))
    np.testing.assert_allclose(cut[1], 0.15, rtol=1e-12)


def test_actions_are_what_the_simulator_does_with_the_same_controls():
    env = SimulatorEnv(dl.scenes.on_floor("go2"), frame_skip=5)
    env.reset(seed=1)
    sim = dl.Simulator(dl.scenes.on_floor("go2"))
    sim.reset(sim.model.keyframes["home"])
    rng = np.random.default_rng(0)
    high = np.array([a.control_range[1] for a in sim.model.actuators])
    for _ in range(10):
        action = rng.uniform(-1, 1, 12)
        observation, *_ = env.step(action)
        for _ in range(5):
            sim.step(control=high * action)
    np.testing.assert_array_equal(observation, np.concatenate([sim.q[2:], sim.v]))


def test_same_seed_same_episode_and_another_differs():
    env = Go2Env()
    first, _ = env.reset(seed=3)
    after, *_ = env.step(np.full(12, 0.2))
    again, _ = env.reset(seed=3)
    later, *_ = env.step(np.full(12, 0.2))
    np.testing.assert_array_equal(first, again)
    np.testing.assert_array_equal(after, later)
    assert np.abs(env.reset(seed=4)[0] - first).max() > 1e-4


def test_go2_stands_still_on_its_targets_and_rises_to_them():
    env = Go2Env(noise=0.0)
    env.reset(seed=0)
    for _ in range(100):
        observation, _, failed, late, facts = env.step(np.zeros(12))
    assert not failed
    assert not late
    assert facts["contacts"] >= 2
    assert observation[0] > 0.2
    lying = Go2Env("stand", noise=0.0)
    low = lying.reset(seed=0)[0][0]
    rewards = [lying.step(np.zeros(12))[1] for _ in range(100)]
    assert low < 0.15
    assert lying.simulator.q[2] > 0.2
    assert rewards[-1] > rewards[0] + 0.2


def test_reward_and_end_see_the_moment_and_time_runs_out():
    seen = []
    env = SimulatorEnv(
        SLIDER.format(low=-1, high=1), reward=lambda m: seen.append(m) or 3.0, terminated=lambda m: m.step.q[0] > 0.02, max_steps=4
    )
    env.reset(seed=0)
    ends = [env.step(np.array([1.0]))[1:4] for _ in range(4)]
    # a = ½ m/s²; 0.02 m after 0.283 s: never within 4 · 10 ms
    assert ends == [(3.0, False, False)] * 3 + [(3.0, False, True)]
    assert seen[1].seconds == pytest.approx(0.01)
    assert seen[1].before[0] == seen[0].step.q[0]
    env.reset(options={"q": [0.5]})
    assert env.step(np.array([1.0]))[2]


def test_velocities_beyond_numbers_end_the_episode_where_it_was():
    env = SimulatorEnv(SLIDER.format(low=-1, high=1), control=lambda action, q, v: action)
    env.reset(seed=0, options={"v": [1e308]})
    env.simulator.step = lambda control: (_ for _ in ()).throw(dl.errors.UnstableError("beyond numbers"))
    observation, reward, failed, late, facts = env.step(np.array([1.0]))
    assert (reward, failed, late, facts["status"]) == (0.0, True, False, "unstable")
    assert observation[0] == 0.0


def test_pictures_show_the_robot():
    env = Go2Env(render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (240, 320, 3)
    assert picture.dtype == np.uint8
    # the robot is tinted blue, which neither floor nor sky are so much
    assert ((picture[..., 2].astype(int) - picture[..., 0]) > 60).sum() > 500
    assert Go2Env().render() is None


def test_registered_name_makes_it():
    register()
    register()
    env = gymnasium.make("delassus/Go2-v0", task="stand")
    assert isinstance(env.unwrapped, Go2Env)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: SimulatorEnv(dl.scenes.box_stack(1)), "actuators"),
        (lambda: Go2Env("fly"), "task"),
        (lambda: Go2Env(render_mode="human"), "render_mode"),
        (lambda: Go2Env(frame_skip=0), "frame_skip"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(dl.errors.ArgumentError, match=words):
        call()


def test_without_gymnasium_the_error_names_the_extra():
    code = """
import sys
sys.modules["gymnasium"] = None
import delassus
try:
    import delassus.gym
except delassus.errors.MissingExtraError as error:
    assert "delassus[gym]" in str(error)
else:
    raise SystemExit(1)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
