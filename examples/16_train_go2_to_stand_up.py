"""PPO in NumPy teaches Go2 to stand up, in 64 worlds at once (needs the extra gym).

Without arguments it learns for some seconds and checks that the policy gets better. `python 16_train_go2_to_stand_up.py 120 curve.png` makes 120 updates, checks that all robots of new
seeds stand at the end, and draws the learning curve; that takes about a minute of processor time.
"""

import os
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices are small: threads of BLAS would only wait for each other
import numpy as np

try:
    from delassus.gym import WorldsEnv, ppo
except ImportError as missing:
    print(missing)
    sys.exit()

updates = int(sys.argv[1]) if len(sys.argv) > 1 else 12
env = WorldsEnv("Go2StandUp", 64, autoreset_mode="SameStep")
policy = ppo.Policy(env.task.observations, len(env.task.nominal), seed=0)
untrained = ppo.Policy(env.task.observations, len(env.task.nominal), seed=0)


def tested(policy):
    """Return the mean reward per action of whole episodes on seeds that were not trained on, and heights at their end [m]."""
    trial = WorldsEnv("Go2StandUp", 64, autoreset_mode="Disabled")
    observation, _ = trial.reset(seed=10_000)
    rewards = []
    for _ in range(trial.max_episode_steps):
        observation, reward, *_ = trial.step(policy(observation))
        rewards.append(reward)
    return np.mean(rewards), trial.worlds.q[:, 2].copy()


curve = []
for done in ppo.train(env, policy, updates=updates, steps=24, rate=2e-3):
    curve.append((done.steps, done.reward))
    if done.update % 10 == 0 or done.update == updates:
        share = done.collecting_seconds / done.seconds
        print(
            f"update {done.update}: {done.steps:,} steps, reward {done.reward:.3f}, {done.seconds:.0f} s, {done.cpu_seconds:.0f} s of processors, "
            f"{share:.0%} of it in worlds"
        )

(before, low), (after, high) = tested(untrained), tested(policy)
print(f"reward of new seeds from {before:.3f} to {after:.3f}, height from {np.median(low):.2f} m to {np.median(high):.2f} m")
assert after > before + 0.05
if updates >= 100:
    standing = env.task.standing[2]
    print(f"{np.mean(np.abs(high - standing) < 0.05):.0%} of 64 robots stand within 5 cm of {standing:.2f} m")
    assert (np.abs(high - standing) < 0.05).all()

if len(sys.argv) > 2:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    steps, rewards = np.array(curve).T
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    axes.plot(steps / 1e3, rewards, color="tab:blue", label="policy with noise, while it learns")
    axes.axhline(before, color="gray", linestyle=":", label=f"untrained, new seeds: {before:.2f}")
    axes.axhline(after, color="tab:orange", linestyle="--", label=f"trained, new seeds: {after:.2f}")
    axes.set(xlabel="actions of all worlds [1000]", ylabel="mean reward per action", ylim=(0, 1))
    axes.set_title(f"Go2 learns to stand up: {done.seconds:.0f} s, {done.cpu_seconds:.0f} s of processors", fontsize=10)
    axes.legend(loc="lower right", fontsize=8)
    figure.savefig(sys.argv[2], dpi=130)
