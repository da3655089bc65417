"""Environments of many worlds do what as many single ones do, and keep Gymnasium's contract."""

import subprocess
import sys
from importlib.metadata import entry_points

import numpy as np
import pytest
from scipy import stats

import delassus as dl

gymnasium = pytest.importorskip("gymnasium", exc_type=ImportError)
from gymnasium.utils.env_checker import check_env  # noqa: E402
from gymnasium.vector import AutoresetMode, SyncVectorEnv  # noqa: E402
from gymnasium.wrappers import TimeLimit  # noqa: E402
from gymnasium.wrappers.vector import RecordEpisodeStatistics  # noqa: E402

from delassus.gym import TASKS, WorldEnv, WorldsEnv, register  # noqa: E402
from delassus.gym.draws import uniform  # noqa: E402
from oracles.slider import Slider  # noqa: E402

MODES = list(AutoresetMode)


# ---- registration -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        'gymnasium.make("delassus.gym:delassus/Go2Walk-v0")',
        'gymnasium.make_vec("delassus.gym:delassus/Go2Walk-v0", num_envs=64, vectorization_mode="vector_entry_point")',
    ],
)
def test_name_with_its_module_needs_no_import(call):
    code = f"import gymnasium, sys; env = {call}; env.reset(seed=0); print(type(env.unwrapped).__name__, env.action_space.shape)"
    said = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split(maxsplit=1) == (["WorldsEnv", "(64, 12)\n"] if "vec" in call else ["WorldEnv", "(12,)\n"])


def test_entry_point_registers_every_task():
    (entry,) = (e for e in entry_points(group="gymnasium.envs") if e.name == "delassus")
    assert entry.load() is register
    for name, task in TASKS.items():
        spec = gymnasium.spec(f"delassus/{name}-v0")
        assert spec.max_episode_steps == task.max_episode_steps


def test_a_task_has_its_registered_name_too():
    assert [type(WorldsEnv(name, 1).task).__name__ for name in ("Go2Walk", "delassus/Go2Walk-v0")] == ["Go2Walk"] * 2


# ---- the same as single ones --------------------------------------------------------------------------------------------------


def sync(mode, n=5, limit=20):
    return SyncVectorEnv([lambda: TimeLimit(WorldEnv(Slider()), limit) for _ in range(n)], autoreset_mode=mode)


def same(ours, theirs):
    for a, b in zip(ours[:-1], theirs[:-1], strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
    final = ours[-1].get("_final_obs", np.zeros(5, dtype=bool))
    np.testing.assert_array_equal(final, theirs[-1].get("_final_obs", np.zeros(5, dtype=bool)))
    for k in np.flatnonzero(final):
        np.testing.assert_array_equal(ours[-1]["final_obs"][k], theirs[-1]["final_obs"][k])


@pytest.mark.parametrize("mode", MODES[:2])
@pytest.mark.parametrize("seed", [7, [3, 1, 4, 1, 5]], ids=["one seed", "seeds"])
def test_autoreset_does_what_gymnasium_does_with_single_environments(mode, seed):
    ours, theirs = WorldsEnv(Slider(), 5, autoreset_mode=mode, threads=2), sync(mode)
    rng = np.random.default_rng(0)
    same(ours.reset(seed=seed), theirs.reset(seed=seed))
    ends = np.zeros(2)
    for _ in range(70):
        action = rng.uniform(-1.2, 1.2, (5, 1)).astype(np.float32)
        done, wanted = ours.step(action), theirs.step(action)
        same(done, wanted)
        ends += done[2].sum(), done[3].sum()
    assert (ends > 0).all()  # both ways to end were seen
    same(ours.reset(), theirs.reset())


def test_disabled_autoreset_leaves_it_to_the_user():
    ours, theirs = WorldsEnv(Slider(), 5, autoreset_mode="Disabled"), sync(AutoresetMode.DISABLED)
    same(ours.reset(seed=1), theirs.reset(seed=1))
    for _ in range(25):
        action = np.ones((5, 1), dtype=np.float32)
        done, wanted = ours.step(action), theirs.step(action)
        same(done, wanted)
        if (ended := done[2] | done[3]).any():
            same(ours.reset(options={"reset_mask": ended}), theirs.reset(options={"reset_mask": ended}))


def test_world_moves_by_newtons_law():
    env = WorldEnv(Slider(width=0.0))
    (x, v, goal, action), _ = env.reset(seed=0)
    assert (x, action) == (0.0, 0.0)
    # 2 N · ½ on 2 kg for five steps of h = 10 ms, symplectic Euler: v += ½ · 5h, x += 5h v + ½ · 15 h²
    observation, reward, *_ = env.step(np.array([0.5], dtype=np.float32))
    np.testing.assert_allclose(observation, [0.05 * v + 0.5 * 15e-4, v + 0.025, goal, 0.5], rtol=1e-6)
    assert reward == pytest.approx(1 - observation[0] ** 2 - 0.01 * 0.5)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_change_a_bit(threads):
    rng = np.random.default_rng(0)
    actions = rng.uniform(-1, 1, (20, 6, 12)).astype(np.float32)
    ways = []
    for count in (1, threads):
        env = WorldsEnv("Go2StandUp", 6, threads=count, max_episode_steps=8, autoreset_mode="SameStep")
        ways.append([env.reset(seed=2)[0], *(env.step(action)[0] for action in actions)])
    np.testing.assert_array_equal(*ways)


def test_start_depends_on_seed_world_and_episode_only():
    """World 2 of three, whose neighbours end at other times, starts its episodes as a single environment does."""
    env, one = WorldsEnv(Slider(), 3, autoreset_mode="SameStep"), WorldEnv(Slider())
    env.reset(seed=11)
    starts = []
    for k in range(60):
        action = np.array([[0.0], [1.0], [-1.0 if k % 2 else 1.0]], dtype=np.float32)
        observation, _, terminated, truncated, _ = env.step(action)
        if terminated[2] or truncated[2]:
            starts.append(observation[2])
    assert len(starts) >= 2
    one.reset(seed=13)
    for start in starts:
        np.testing.assert_array_equal(one.reset()[0], start)


def test_statistics_wrapper_counts_episodes():
    env = RecordEpisodeStatistics(WorldsEnv(Slider(), 4, max_episode_steps=10, autoreset_mode="SameStep"))
    env.reset(seed=0)
    lengths = []
    for _ in range(30):
        *_, terminated, truncated, infos = env.step(np.zeros((4, 1), dtype=np.float32))
        lengths += infos["episode"]["l"][terminated | truncated].tolist() if "episode" in infos else []
    assert len(lengths) >= 12
    assert max(lengths) == 10


def test_frame_skip_and_time_step_are_taken():
    env = WorldEnv("Go2Walk", frame_skip=3, timestep=0.005)
    env.reset(seed=0)
    assert env.step(np.zeros(12, dtype=np.float32))[-1]["time"] == pytest.approx(0.015)
    assert env.metadata["render_fps"] == 67


def test_states_of_options_are_the_start():
    env = WorldsEnv(Slider(), 3)
    observation, _ = env.reset(seed=0, options={"q": [[0.1], [0.2], [0.3]], "v": [1.0]})
    np.testing.assert_array_equal(observation[:, :2], np.float32([[0.1, 1], [0.2, 1], [0.3, 1]]))
    mask = np.array([False, True, False])
    observation, _ = env.reset(options={"reset_mask": mask, "q": [0.4]})
    np.testing.assert_array_equal(observation[:, 0], np.float32([0.1, 0.4, 0.3]))


def test_staggered_episodes_end_one_after_the_other():
    env = WorldsEnv(Slider(width=0.0, speed=0.0), 4, max_episode_steps=8, autoreset_mode="SameStep")
    env.reset(seed=0, options={"stagger": True})
    ends = np.array([env.step(np.zeros((4, 1), dtype=np.float32))[3] for _ in range(18)])
    assert [(1 + np.flatnonzero(column)).tolist() for column in ends.T] == [[2, 10, 18], [4, 12], [6, 14], [8, 16]]


def test_world_that_cannot_be_stepped_ends_with_reward_zero():
    env = WorldsEnv(Slider(width=0.0), 3, autoreset_mode="SameStep")
    env.reset(seed=0)
    stepped, unstable = env.worlds.step, env.worlds.STATUSES.index("unstable")
    env.worlds.step = lambda *given: (stepped(*given), env.worlds.status.__setitem__(1, unstable))
    observation, rewards, terminated, _, infos = env.step(np.zeros((3, 1), dtype=np.float32))
    assert terminated.tolist() == [False, True, False]
    assert rewards[1] == 0.0
    assert (rewards[[0, 2]] > 0.5).all()
    assert infos["final_info"]["status"][1] == unstable
    assert np.isfinite(observation).all()


def test_pictures_of_all_worlds():
    env = WorldsEnv(Slider(), 2, render_mode="rgb_array")
    env.reset(seed=0)
    assert [picture.shape for picture in env.render()] == [(240, 320, 3)] * 2
    assert WorldsEnv(Slider(), 2).render() is None


# ---- random numbers -----------------------------------------------------------------------------------------------------------


def test_draws_are_uniform_and_independent():
    x = uniform(np.repeat(np.arange(100), 50), np.tile(np.arange(50), 100), 4)
    assert x.shape == (5000, 4)
    assert stats.kstest(x.ravel(), "uniform", (-1, 2)).pvalue > 0.01
    table = x.reshape(100, 50, 4)
    for a, b in ((table[1:], table[:-1]), (table[:, 1:], table[:, :-1]), (x[:, 1:], x[:, :-1])):  # next seed, episode, column
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 4 / np.sqrt(a.size)
    assert len(np.unique(x)) == x.size


def test_draws_do_not_depend_on_other_rows():
    seeds, episodes = np.array([5, 2**64 - 1, 5], dtype=np.uint64), np.array([0, 3, 1])
    x = uniform(seeds, episodes, 3)
    for k in range(3):
        np.testing.assert_array_equal(uniform(seeds[k : k + 1], episodes[k : k + 1], 3)[0], x[k])
    np.testing.assert_array_equal(uniform(seeds, episodes, 2), x[:, :2])
    assert uniform(seeds[:0], episodes[:0], 3).shape == (0, 3)


# ---- mistakes -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: WorldsEnv("Go2Fly"), "Go2Walk"),
        (lambda: WorldsEnv(3), "task"),
        (lambda: WorldsEnv(Slider(), width=1.0), "width"),
        (lambda: WorldsEnv(Slider(), 0), "num_envs"),
        (lambda: WorldsEnv(Slider(), autoreset_mode="Never"), "autoreset_mode"),
        (lambda: WorldsEnv(Slider(), max_episode_steps=0), "max_episode_steps"),
        (lambda: WorldsEnv(Slider(), frame_skip=0), "frame_skip"),
        (lambda: WorldsEnv(Slider(), render_mode="human"), "render_mode"),
        (lambda: WorldsEnv(Slider()).step(np.zeros((1, 1))), "reset first"),
        (lambda: begun().step(np.zeros((2, 2))), r"\(2, 1\)"),
        (lambda: begun().step(np.array([[0.0], [np.nan]])), "finite"),
        (lambda: begun().reset(seed=[1]), "seed"),
        (lambda: begun().reset(seed=-1), "seed"),
        (lambda: begun().reset(options={"reset_mask": np.ones(3, dtype=bool)}), "reset_mask"),
        (lambda: begun().reset(options={"reset_mask": [0, 1]}), "reset_mask"),
        (lambda: begun().reset(options={"q": [np.nan]}), "finite"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(dl.errors.DelassusError, match=words):
        call()


def begun():
    env = WorldsEnv(Slider(), 2)
    env.reset(seed=0)
    return env


def test_checker_of_gymnasium_is_content_with_a_task_of_ones_own():
    with pytest.warns(UserWarning, match="Box observation space"):
        check_env(WorldEnv(Slider(), render_mode="rgb_array"))
