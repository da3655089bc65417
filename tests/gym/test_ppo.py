"""PPO: gradients, advantages and likelihoods against their definitions, and a policy that gets better."""

import numpy as np
import pytest
from scipy import stats

import delassus as dl

pytest.importorskip("gymnasium", exc_type=ImportError)
from delassus.gym import WorldsEnv, ppo
from oracles.slider import Slider


def made(seed=0, n=40):
    """A policy in float64 and samples whose ratios are on both sides of the bounds 0.8 and 1.2, and not close to them."""
    rng = np.random.default_rng(seed)
    policy = ppo.Policy(5, 3, hidden=(7, 6), seed=seed, dtype=np.float64)
    policy.parameters += 0.3 * rng.standard_normal(len(policy.parameters))
    o, a = rng.standard_normal((n, 5)), rng.standard_normal((n, 3))
    shift = rng.choice([-0.5, -0.1, 0.1, 0.5], n)
    old = policy.log_likelihood(a, policy(o)) + shift
    return policy, ppo.Samples(o, a, old, rng.standard_normal(n), rng.standard_normal(n))


def test_log_likelihood_is_that_of_normal_distributions():
    policy, s = made()
    want = stats.norm(policy(s.observations), np.exp(policy.log_deviation)).logpdf(s.actions).sum(axis=1)
    np.testing.assert_allclose(policy.log_likelihood(s.actions, policy(s.observations)), want, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weights", [(0.0, 0.0), (0.5, 0.0), (0.7, 0.03)])
def test_gradient_of_the_loss_is_its_finite_difference(seed, weights):
    policy, s = made(seed)
    options = {"clip": 0.2, "value_weight": weights[0], "entropy_weight": weights[1]}
    ppo.loss_and_gradient(policy, s, **options)
    gradient, differences, h = policy.gradient.copy(), np.zeros_like(policy.gradient), 1e-6
    for k in range(len(differences)):
        kept = policy.parameters[k]
        sides = []
        for sign in (1, -1):
            policy.parameters[k] = kept + sign * h
            sides.append(ppo.loss_and_gradient(policy, s, **options))
        policy.parameters[k] = kept
        differences[k] = (sides[0] - sides[1]) / (2 * h)
    assert np.abs(gradient).max() > 0.01
    np.testing.assert_allclose(gradient, differences, atol=2e-9)


def test_loss_is_its_definition():
    policy, s = made(4)
    ratio = np.exp(policy.log_likelihood(s.actions, policy(s.observations)) - s.log_likelihoods)
    terms = [min(r * a, min(max(r, 0.8), 1.2) * a) for r, a in zip(ratio, s.advantages, strict=True)]
    value = 0.5 * np.mean((policy.values(s.observations) - s.returns) ** 2)
    want = -np.mean(terms) + 0.5 * value - 0.1 * policy.log_deviation.sum()
    assert ppo.loss_and_gradient(policy, s, entropy_weight=0.1) == pytest.approx(want, rel=1e-12)


def test_advantages_are_discounted_sums_of_surprises_within_an_episode():
    rng = np.random.default_rng(0)
    T, n, g, lam = 12, 3, 0.9, 0.8
    rewards, values, following = rng.standard_normal((3, T, n))
    ended = rng.uniform(size=(T, n)) < 0.2
    delta = rewards + g * following - values
    want = np.zeros((T, n))
    for k in range(n):
        for t in range(T):
            for later in range(t, T):
                want[t, k] += (g * lam) ** (later - t) * delta[later, k]
                if ended[later, k]:
                    break
    np.testing.assert_allclose(ppo.advantages(rewards, values, following, ended, discount=g, trace=lam), want, atol=1e-13)


def test_adam_takes_steps_of_its_rate_and_finds_a_minimum():
    x = np.array([3.0, -2.0])
    adam = ppo.Adam(x, rate=0.1, max_norm=np.inf)
    adam.step(np.array([5.0, -0.01]))
    np.testing.assert_allclose(x, [2.9, -1.9], atol=1e-6)  # the first step is the rate, whatever the gradient
    for _ in range(500):
        adam.step(2 * (x - [1.0, 1.0]))
    np.testing.assert_allclose(x, 1.0, atol=1e-3)


def test_samples_bootstrap_where_time_was_up_and_not_where_it_failed():
    """Returns of ``collect`` with λ-traces undone: with a critic V, R = A + V, and A of a last step is r + γ V(final) − V, without V(final) where the episode failed."""
    env = WorldsEnv(Slider(width=0.45), 8, autoreset_mode="SameStep", max_episode_steps=6)
    policy = ppo.Policy(4, 1, seed=1, deviation=1.0, dtype=np.float64)
    seen, step = [], env.step
    env.step = lambda action: seen.append(step(action)) or seen[-1]
    first, _ = env.reset(seed=0)
    last, samples, mean = ppo.collect(env, policy, first, 15, np.random.default_rng(0), discount=0.9)
    np.testing.assert_array_equal(last, seen[-1][0])
    assert mean == pytest.approx(np.mean([s[1] for s in seen]))
    values = policy.values(samples.observations).reshape(15, 8)
    gains = samples.advantages.reshape(15, 8)
    counted = [0, 0]
    for t, (_, reward, terminated, truncated, infos) in enumerate(seen):
        for k in np.flatnonzero(terminated | truncated):
            after = 0.0 if terminated[k] else policy.values(infos["final_obs"][k : k + 1])[0]
            assert gains[t, k] == pytest.approx(reward[k] + 0.9 * after - values[t, k])
            counted[int(terminated[k])] += 1
    assert min(counted) > 0
    # within an episode: A_t = r + γ V(next) − V + γ λ A_{t+1}
    t, k = next((t, k) for t in range(14) for k in range(8) if not (seen[t][2][k] or seen[t][3][k]))
    want = seen[t][1][k] + 0.9 * values[t + 1, k] - values[t, k] + 0.9 * 0.95 * gains[t + 1, k]
    assert gains[t, k] == pytest.approx(want)


def test_training_makes_a_policy_better_and_repeats_to_the_bit():
    def learnt(updates):
        env = WorldsEnv(Slider(width=0.3, speed=0.4), 32, autoreset_mode="SameStep")
        policy = ppo.Policy(4, 1, hidden=(16, 16), seed=0)
        told = list(ppo.train(env, policy, updates=updates, steps=20, rate=5e-3, seed=1))
        assert [p.steps for p in told] == [640 * (k + 1) for k in range(updates)]
        return policy

    def score(policy):
        env = WorldsEnv(Slider(width=0.3, speed=0.4), 64, autoreset_mode="Disabled")
        observation, _ = env.reset(seed=100)
        total, alive = 0.0, np.ones(64, dtype=bool)
        for _ in range(40):
            observation, reward, terminated, *_ = env.step(policy(observation))
            alive &= ~terminated
            total += (reward * alive).mean()
        return total / 40

    before, after = score(ppo.Policy(4, 1, hidden=(16, 16), seed=0)), score(learnt(60))
    assert before < 0.85
    assert after > 0.92
    np.testing.assert_array_equal(learnt(3).parameters, learnt(3).parameters)


def test_other_ways_to_reset_are_refused():
    with pytest.raises(dl.errors.ArgumentError, match="SameStep"):
        next(ppo.train(WorldsEnv(Slider(), 2), ppo.Policy(4, 1), updates=1))
