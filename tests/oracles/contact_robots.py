"""Random contact problems of robots that move along a direction: what changes with a number s is q, v, friction of contacts and of joints."""

import numpy as np

import delassus as dl

ROBOTS = ("go2", "g1", "cassie", "iiwa", "solo", "talos")


class MovingProblem:
    """
    Contacts of three, four and six rows at random places, feet with four points, limits, dry friction and a point that is held, each of a kind or none; g = J v. `at(s)` is the problem moved by s:
    (G, g, constraints).
    """

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng([seed, 77])
        model = self.model = dl.load(ROBOTS[seed % len(ROBOTS)])
        self.q = model.random(rng)
        self.v, self.dq, self.dv = rng.standard_normal((3, model.nv))
        self.dq *= 0.3
        bodies = np.arange(1, model.nbody)
        self.contacts = []
        for body in rng.choice(bodies, size=min(len(bodies), int(rng.integers(1, 5))), replace=False):
            rows = int(rng.choice([3, 3, 4, 6]))
            normal = rng.standard_normal(3)
            patch = rng.random() < 0.3
            normal = np.array([0.0, 0.0, 1.0]) if patch else normal
            places = 0.05 * np.array([(x, y, 0) for x in (1, -1) for y in (1, -1)]) if patch else 0.1 * rng.standard_normal((1, 3))
            friction = float(rng.choice([0.0, 0.3, 0.8, 3.0, 10.0]) if rows == 3 else rng.choice([0.3, 1.0, 10.0]))
            friction = 30.0 if patch else friction  # what sticks and is redundant moves joints in one way only
            self.contacts += [(int(body), p, normal, rows, friction, rng.uniform(0.02, 0.1, 2)) for p in places]
        self.dfriction = np.array([0.1 * rng.standard_normal() if c[4] > 0 else 0.0 for c in self.contacts])
        hinges = [j for j in range(model.njoint) if model.joints[j].type in ("hinge", "slide")]
        chosen = [int(j) for j in rng.permutation(hinges)]
        self.limits = [(chosen.pop(), str(rng.choice(["lower", "upper"]))) for _ in range(int(rng.integers(0, 3)))]
        self.rubbing = [(chosen.pop(), float(rng.uniform(0.05, 0.5))) for _ in range(int(rng.integers(0, 3)))]
        self.dloss = 0.1 * rng.standard_normal(len(self.rubbing))
        self.held = int(rng.choice(bodies)) if rng.random() < 0.3 else None

    def constraints(self, s=0.0):
        model = self.model
        rows = []
        for (body, point, normal, n, friction, turn), change in zip(self.contacts, self.dfriction, strict=True):
            mu = friction + s * change
            turns = {}
            if n > 3:
                turns["torsional_friction"] = turn[0] * mu  # the scale of a row is this over friction: it stays
            if n > 4:
                turns["rolling_friction"] = turn[1] * mu
            rows.append(dl.PointContact(model, body, point=point, normal=normal, friction=mu, **turns))
        rows += [dl.JointLimit(model, joint, side) for joint, side in self.limits]
        rows += [dl.JointFriction(model, joint, loss + s * change) for (joint, loss), change in zip(self.rubbing, self.dloss, strict=True)]
        if self.held is not None:
            rows.append(dl.Connect(model, self.held))
        return rows

    def at(self, s):
        rows = self.constraints(s)
        G = dl.DelassusOperator(self.model, rows)
        G.update(self.configuration(s))
        return G, G.jacobian @ (self.v + s * self.dv), rows

    def configuration(self, s):
        return dl.integrate(self.model, self.q, s * self.dq)

    def bounds(self):
        """Changes of the lower and upper bounds of all rows that are no contact's."""
        n, held = len(self.limits), 0 if self.held is None else 3
        change = np.concatenate([np.zeros(n), self.dloss, np.zeros(held)])
        return -change, change

    def response(self, s, forces):
        """v + M⁻¹ Jᵀ λ at s, of forces as they are."""
        G, _, _ = self.at(s)
        M = dl.mass_matrix(self.model, self.configuration(s))
        return self.v + s * self.dv + np.linalg.solve(M, G.jacobian.T @ forces)
