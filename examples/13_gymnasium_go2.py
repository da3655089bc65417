"""Go2 in a Gymnasium environment with rigid contacts: it stands up, then random search teaches it to trot a little (needs the extra gym)."""

import sys

import numpy as np

try:
    from delassus.gym import Go2Env
except ImportError as missing:
    print(missing)
    sys.exit()

# stand up: zero actions are the standing pose, motors follow by springs and dampers
env = Go2Env("stand", noise=0.0)
observation, _ = env.reset(seed=0)
low = observation[0]
for _ in range(50):
    observation, reward, failed, late, facts = env.step(np.zeros(12))
print(f"rose from {low:.2f} m to {observation[0]:.2f} m on {facts['contacts']} contacts, reward {reward:.2f}")
assert observation[0] > low + 0.08

# walk: diagonal legs swing in turn; amplitudes, phase and lean are searched at random
walk = Go2Env("walk", noise=0.0, max_steps=60)
phase = np.tile([0.0, np.pi, np.pi, 0.0], (3, 1)).T.ravel()  # FL, FR, RL, RR: hip, thigh, calf


def episode(gait):
    """Sum of rewards of one episode, and how far it went [m]."""
    hip, thigh, calf, lag, lean = gait
    walk.reset(seed=0)
    total = 0.0
    for k in range(60):
        turn = 2 * np.pi * 2.0 * k * walk.frame_skip * walk.simulator.timestep + phase
        swing = np.tile([hip, thigh, calf], 4) * np.sin(turn + np.tile([0, 0, lag], 4)) + np.tile([0, lean, 0], 4)
        _, reward, failed, late, _ = walk.step(swing)
        total += reward
        if failed or late:
            break
    return total, float(walk.simulator.q[0])


rng = np.random.default_rng(1)
best = np.array([0.0, 0.3, 0.3, 1.5, 0.0])
score, far = first, _ = episode(best)
for _ in range(12):
    gait = best + 0.25 * rng.standard_normal(5)
    tried, went = episode(gait)
    if tried > score:
        best, score, far = gait, tried, went
print(f"reward from {first:.2f} to {score:.2f} in 12 trials: {100 * far:.1f} cm in {60 * walk.frame_skip * walk.simulator.timestep:.1f} s")
assert score > first
