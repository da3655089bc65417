"""Proximal policy optimization (Schulman et al. 2017) in NumPy: two small tanh networks, hand-written gradients, Adam, generalized advantages, the clipped objective.

The policy is Gaussian: action = μ(o) + σ ξ with ξ normal, μ a network of the observation o, log σ a parameter per action. A second network estimates the value V(o) of a state.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from ..errors import ArgumentError

__all__ = ["Adam", "Policy", "Progress", "Samples", "advantages", "collect", "loss_and_gradient", "train"]

Array = NDArray[Any]


class Network:
    """Layers y = tanh(x W + b), the last one without tanh. Weights are views into one vector of parameters."""

    def __init__(self, sizes: list[int], parameters: Array, gradient: Array) -> None:
        self.layers, self.gradients = self._views(sizes, parameters), self._views(sizes, gradient)

    @staticmethod
    def count(sizes: list[int]) -> int:
        """Return the number of parameters."""
        return sum((i + 1) * o for i, o in pairwise(sizes))

    @staticmethod
    def _views(sizes: list[int], flat: Array) -> list[tuple[Array, Array]]:
        views, at = [], 0
        for i, o in pairwise(sizes):
            views.append((flat[at : at + i * o].reshape(i, o), flat[at + i * o : at + (i + 1) * o]))
            at += (i + 1) * o
        return views

    def __call__(self, x: Array) -> tuple[Array, list[Array]]:
        """Return the output (n, last), and the input of every layer, for :meth:`backward`."""
        inputs = []
        for k, (W, b) in enumerate(self.layers):
            inputs.append(x)
            x = x @ W + b
            x = np.tanh(x) if k < len(self.layers) - 1 else x
        return x, inputs

    def backward(self, inputs: list[Array], dy: Array) -> None:
        """Write the gradient of a loss whose derivative with respect to the output is dy (n, last)."""
        for k in reversed(range(len(self.layers))):
            dW, db = self.gradients[k]
            np.matmul(inputs[k].T, dy, out=dW)
            dy.sum(axis=0, out=db)
            if k:  # through the layer, and the tanh before it: tanh' = 1 − tanh²
                dy = (dy @ self.layers[k][0].T) * (1 - inputs[k] ** 2)


class Policy:
    """A Gaussian policy and a value estimate.

    Args:
        observations, actions: number of each.
        hidden: sizes of the hidden layers of both networks.
        seed: seed of the initial weights.
        deviation: initial σ.
        dtype: dtype of all numbers.

    Attributes:
        parameters: (p,) all parameters in one vector: networks of μ and V, then log σ.
        gradient: (p,) written by :func:`loss_and_gradient`.
    """

    def __init__(
        self,
        observations: int,
        actions: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        seed: int = 0,
        deviation: float = 0.5,
        dtype: Any = np.float32,
    ) -> None:
        shapes = [[observations, *hidden, actions], [observations, *hidden, 1]]
        a, b = np.cumsum([Network.count(sizes) for sizes in shapes])
        self.parameters, self.gradient = np.zeros(b + actions, dtype), np.zeros(b + actions, dtype)
        self.mean = Network(shapes[0], self.parameters[:a], self.gradient[:a])
        self.value = Network(shapes[1], self.parameters[a:b], self.gradient[a:b])
        self.log_deviation, self.log_deviation_gradient = self.parameters[b:], self.gradient[b:]
        rng = np.random.default_rng(seed)
        for network, last in ((self.mean, 0.01), (self.value, 1.0)):
            for k, (W, _) in enumerate(network.layers):
                W[:] = rng.standard_normal(W.shape) / math.sqrt(len(W)) * (last if k == len(network.layers) - 1 else 1.0)
        self.log_deviation[:] = math.log(deviation)

    def __call__(self, observations: Array) -> Array:
        """Return the mean action (n, actions)."""
        return self.mean(observations.astype(self.parameters.dtype))[0]

    def values(self, observations: Array) -> Array:
        """Return estimates of the value (n,)."""
        return np.asarray(self.value(observations.astype(self.parameters.dtype))[0][:, 0])

    def log_likelihood(self, actions: Array, mean: Array) -> Array:
        """(n,) log π(a | o) = −Σ ½ ((a − μ)/σ)² + log σ + ½ log 2π."""
        z = (actions - mean) * np.exp(-self.log_deviation)
        return np.asarray(-(0.5 * z**2 + self.log_deviation + 0.5 * math.log(2 * math.pi)).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of a policy: observations (n, observations), actions (n, actions) and their log_likelihoods (n,), advantages (n,), returns (n,), the targets of the value."""

    observations: Array
    actions: Array
    log_likelihoods: Array
    advantages: Array
    returns: Array

    def __getitem__(self, rows: Array) -> Samples:
        return Samples(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


def loss_and_gradient(policy: Policy, s: Samples, *, clip: float = 0.2, value_weight: float = 0.5, entropy_weight: float = 0.0) -> float:
    """Return the loss of PPO on some samples, and write its gradient to ``policy.gradient``.

    loss = −mean min(r A, clip(r, 1 − ε, 1 + ε) A) + w_v mean ½ (V − R)² − w_e Σ log σ,   r = π(a | o) / π_old(a | o).
    """
    n = len(s.actions)
    mean, mean_inputs = policy.mean(s.observations)
    value, value_inputs = policy.value(s.observations)
    ratio = np.exp(policy.log_likelihood(s.actions, mean) - s.log_likelihoods)
    plain, clipped = ratio * s.advantages, np.clip(ratio, 1 - clip, 1 + clip) * s.advantages
    error = value[:, 0] - s.returns
    loss = -np.minimum(plain, clipped).mean() + value_weight * 0.5 * (error**2).mean() - entropy_weight * policy.log_deviation.sum()

    # d loss / d log π = −r A / n if the unclipped term is the smaller one, else zero, since the clipped one is constant
    d_log = np.where(plain <= clipped, -plain, 0).astype(mean.dtype)[:, None] / n
    deviation = np.exp(policy.log_deviation)
    z = (s.actions - mean) / deviation
    policy.mean.backward(mean_inputs, d_log * z / deviation)  # ∂ log π / ∂μ = z / σ
    policy.log_deviation_gradient[:] = (d_log * (z**2 - 1)).sum(axis=0) - entropy_weight  # ∂ log π / ∂ log σ = z² − 1
    policy.value.backward(value_inputs, (value_weight / n) * error[:, None])
    return float(loss)


class Adam:
    """Adam (Kingma, Ba 2015) with a bound on the gradient norm."""

    def __init__(self, parameters: Array, *, rate: float = 1e-3, max_norm: float = 1.0) -> None:
        self.parameters, self.rate, self.max_norm, self.t = parameters, rate, max_norm, 0
        self.m, self.v = np.zeros_like(parameters), np.zeros_like(parameters)

    def step(self, gradient: Array) -> None:
        """Take a step against a gradient."""
        g = gradient * min(1.0, self.max_norm / (float(np.sqrt((gradient**2).sum())) + 1e-12))
        self.t += 1
        self.m += 0.1 * (g - self.m)
        self.v += 0.001 * (g * g - self.v)
        self.parameters -= self.rate * (self.m / (1 - 0.9**self.t)) / (np.sqrt(self.v / (1 - 0.999**self.t)) + 1e-8)


def advantages(rewards: Array, values: Array, next_values: Array, ended: Array, *, discount: float = 0.98, trace: float = 0.95) -> Array:
    """Return generalized advantages (T, n): A_t = δ_t + γ λ A_{t+1} within an episode, δ_t = r_t + γ V(o_{t+1}) − V(o_t).

    Args:
        rewards, values: (T, n) for T steps of n worlds.
        next_values: (T, n) value of the state after each step: zero if it is terminal, that of the last observation if the time limit was reached.
        ended: (T, n) True if an episode ended with the step, for either reason.
        discount: γ; trace: λ.
    """
    result, running = np.zeros_like(values), np.zeros_like(values[0])
    for t in reversed(range(len(rewards))):
        delta = rewards[t] + discount * next_values[t] - values[t]
        running = delta + discount * trace * np.where(ended[t], 0, running)
        result[t] = running
    return result


def collect(
    env: Any, policy: Policy, observation: Array, steps: int, rng: np.random.Generator, *, discount: float = 0.98
) -> tuple[Array, Samples, float]:
    """Let a policy act in a vector environment that resets in the same step.

    Returns:
        the observation after the last step, samples of steps · num_envs rows, and the mean reward.
    """
    n, dtype = env.num_envs, policy.parameters.dtype
    observations = np.empty((steps + 1, n, observation.shape[1]), dtype)
    actions = np.empty((steps, *env.action_space.shape), dtype)
    likelihoods, rewards, values, next_values = (np.empty((steps, n), dtype) for _ in range(4))
    ended = np.empty((steps, n), dtype=bool)
    observations[0] = observation
    for t in range(steps):
        mean, _ = policy.mean(observations[t])
        actions[t] = mean + np.exp(policy.log_deviation) * rng.standard_normal(mean.shape, dtype)
        likelihoods[t], values[t] = policy.log_likelihood(actions[t], mean), policy.values(observations[t])
        observations[t + 1], rewards[t], terminated, truncated, infos = env.step(actions[t].astype(np.float32))
        ended[t] = terminated | truncated
        if t:
            next_values[t - 1] = np.where(ended[t - 1], next_values[t - 1], values[t])
        if ended[t].any():  # the value after a terminal state is zero; after a time limit the episode would have continued
            next_values[t, ended[t]] = policy.values(infos["final_obs"][ended[t]]) * ~terminated[ended[t]]
    next_values[-1] = np.where(ended[-1], next_values[-1], policy.values(observations[-1]))
    gain = advantages(rewards, values, next_values, ended, discount=discount)
    rows = (observations[:-1], actions, likelihoods, gain, gain + values)
    return observations[-1], Samples(*(x.reshape(steps * n, *x.shape[2:]) for x in rows)), float(rewards.mean())


@dataclass(frozen=True)
class Progress:
    """Statistics of an update.

    Attributes:
        update: its number, from 1; steps: total steps of all worlds so far; reward: mean reward per step during collection.
        divergence: divergence from the previous policy: half the mean square of log likelihood ratios.
        seconds, cpu_seconds: wall time and CPU time since training began; collecting_seconds: wall time spent in the environment.
    """

    update: int
    steps: int
    reward: float
    divergence: float
    seconds: float
    cpu_seconds: float
    collecting_seconds: float


def train(
    env: Any,
    policy: Policy,
    *,
    updates: int,
    steps: int = 24,
    epochs: int = 4,
    minibatches: int = 4,
    rate: float = 1e-3,
    discount: float = 0.98,
    entropy_weight: float = 0.0,
    seed: int = 0,
) -> Iterator[Progress]:
    """Improve a policy; yields after every update, so that the caller prints, saves and stops.

    Args:
        env: a :class:`~delassus.gym.WorldsEnv` with autoreset in the same step.
        policy: policy to train, changed in place.
        updates: number of updates, over which the learning rate falls to a tenth.
        steps: steps of each world per update; epochs: passes over its samples; minibatches: parts of a pass.
        rate: learning rate of Adam; discount: γ; entropy_weight: weight of the policy's entropy; seed: seed of starts, actions and the order of samples.
    """
    if env.metadata.get("autoreset_mode") != AutoresetMode.SAME_STEP:
        raise ArgumentError('env: expected one that resets in the same step. Make it with autoreset_mode="SameStep".')
    rng, adam = np.random.default_rng(seed), Adam(policy.parameters, rate=rate)
    observation, _ = env.reset(seed=seed, options={"stagger": True})
    wall, cpu, collecting = time.perf_counter(), time.process_time(), 0.0
    for k in range(updates):
        begun = time.perf_counter()
        observation, samples, reward = collect(env, policy, observation, steps, rng, discount=discount)
        collecting += time.perf_counter() - begun
        adam.rate = rate * (1 - 0.9 * k / updates)
        for _ in range(epochs):
            for rows in np.array_split(rng.permutation(len(samples.actions)), minibatches):
                part = samples[rows]
                spread = part.advantages.std() + 1e-8
                loss_and_gradient(
                    policy,
                    Samples(
                        part.observations,
                        part.actions,
                        part.log_likelihoods,
                        (part.advantages - part.advantages.mean()) / spread,
                        part.returns,
                    ),
                    entropy_weight=entropy_weight,
                )
                adam.step(policy.gradient)
        change = policy.log_likelihood(samples.actions, policy.mean(samples.observations)[0]) - samples.log_likelihoods
        yield Progress(
            k + 1,
            (k + 1) * steps * env.num_envs,
            reward,
            float((change**2).mean()) / 2,
            time.perf_counter() - wall,
            time.process_time() - cpu,
            collecting,
        )
