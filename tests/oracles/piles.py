"""Rigid bodies in a pile with nothing of the library in it: energies and momenta, and random contact problems from sparse rows in SciPy."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

import delassus as dl

G0 = 9.81


def rotation(q):
    """(n, 3, 3) of unit quaternions (n, 4), w first."""
    w, x, y, z = np.asarray(q, dtype=float).T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


@dataclass(frozen=True, eq=False)
class FreeBodies:
    """Bodies on free joints, their frames in their centres and along their principal axes: mass (n,), moments (n, 3)."""

    mass: np.ndarray
    moments: np.ndarray

    @classmethod
    def of(cls, model):
        """The bodies of a model, read off it, if all of them are such."""
        assert all(body.com == (0.0, 0.0, 0.0) and not any(body.inertia[3:]) for body in model.bodies)
        assert [joint.type for joint in model.joints] == ["free"] * len(model.bodies)
        return cls(np.array([b.mass for b in model.bodies]), np.array([b.inertia[:3] for b in model.bodies]))

    def energy(self, q, v):
        """Kinetic and potential [J]."""
        q, v = np.reshape(q, (-1, 7)), np.reshape(v, (-1, 6))
        kinetic = 0.5 * (self.mass * (v[:, :3] ** 2).sum(axis=1)).sum() + 0.5 * (self.moments * v[:, 3:] ** 2).sum()
        return kinetic, G0 * self.mass @ q[:, 2]

    def momentum(self, q, v):
        """Linear, and angular about the origin, world axes."""
        q, v = np.reshape(q, (-1, 7)), np.reshape(v, (-1, 6))
        linear = self.mass[:, None] * v[:, :3]
        spin = np.einsum("bij,bj->bi", rotation(q[:, 3:]), self.moments * v[:, 3:])
        return linear.sum(axis=0), (np.cross(q[:, :3], linear) + spin).sum(axis=0)


# ---- random contact problems -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RandomPile:
    """Free bodies that touch at random: J (3K, 6n) sparse, M⁻¹ diagonal, velocities of the rows g = J v_f + gaps / dt.

    Attributes:
        J, inverse_mass: rows in the contacts' frames, normal first; (6n,).
        g, friction: (3K,), (K,).
        place, turn, mass, moments: of the bodies.
        pairs: (K, 2) bodies, −1 is the ground; points, normals: (K, 3), world axes.
    """

    J: sparse.csr_matrix
    inverse_mass: np.ndarray
    g: np.ndarray
    friction: np.ndarray
    place: np.ndarray
    turn: np.ndarray
    mass: np.ndarray
    moments: np.ndarray
    pairs: np.ndarray
    points: np.ndarray
    normals: np.ndarray

    def __matmul__(self, x):
        return self.J @ (self.inverse_mass * (self.J.T @ x))

    @property
    def matrix(self):
        return (self.J @ sparse.diags(self.inverse_mass) @ self.J.T).toarray()

    @property
    def cones(self):
        return tuple((3 * k, float(mu)) for k, mu in enumerate(self.friction))

    @property
    def felt(self):
        """Mean diagonal of G over the rows of a contact, for each row."""
        diagonal = self.J.multiply(self.J) @ self.inverse_mass
        return np.repeat(diagonal.reshape(-1, 3).mean(axis=1), 3)

    def operator(self):
        """The library's operator of the same bodies and contacts."""
        b = dl.ModelBuilder("random_pile")
        for k, (x, q, m, moments) in enumerate(zip(self.place, self.turn, self.mass, self.moments, strict=True)):
            b.add_body(f"body{k}", position=x, quaternion=q, mass=m, inertia=moments)
            b.add_joint(f"body{k}", "free", name=f"free{k}")
        model, R = b.build(), rotation(self.turn)
        contacts = []
        for (i, j), x, n, mu in zip(self.pairs, self.points, self.normals, self.friction, strict=True):
            other = {} if j < 0 else {"other": f"body{j}", "other_point": R[j].T @ (x - self.place[j])}
            contacts.append(dl.PointContact(model, f"body{i}", point=R[i].T @ (x - self.place[i]), normal=n, friction=mu, **other))
        G = dl.DelassusOperator(model, contacts)
        G.update(model.neutral())
        return G


def frames(normals):
    """(K, 3, 3) axes of contacts in rows: the normal; the axis it leans to least × it, scaled; the normal × that."""
    least = np.eye(3)[np.abs(normals).argmin(axis=1)]
    first = np.cross(least, normals)
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    return np.stack([normals, first, np.cross(normals, first)], axis=1)


def random_pile(rng, contacts):
    """Bodies of 0.1 to 10 kg on a random graph of patches of one to four points, a third of them on the ground, more rows than velocities, all of it moving.

    It has a solution: with v = 0 nothing goes in, so Coulomb's law can be kept (Klarbring and Pang).
    """
    n = max(2, round(contacts / rng.uniform(2.5, 4.5)))
    place = rng.uniform(0, 0.25 * n ** (1 / 3), (n, 3))
    turn = rng.standard_normal((n, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    mass = 10.0 ** rng.uniform(-1, 1, n)
    sides = rng.uniform(0.05, 0.2, (n, 3)) ** 2
    moments = mass[:, None] / 12 * (sides.sum(axis=1, keepdims=True) - sides)

    pairs, points, normals = [], [], []
    while len(pairs) < contacts:
        i, j = int(rng.integers(n)), -1
        normal, middle = np.array([0.0, 0.0, 1.0]), place[i] - [0, 0, 0.08]
        if rng.random() < 0.67:
            # one of the six nearest
            j = int(rng.choice(np.argsort(((place - place[i]) ** 2).sum(axis=1))[1:7]))
            normal = place[i] - place[j] + 0.05 * rng.standard_normal(3)
            normal, middle = normal / np.linalg.norm(normal), (place[i] + place[j]) / 2
        axes = frames(normal[None])[0]
        for _ in range(min(int(rng.integers(1, 5)), contacts - len(pairs))):
            pairs.append((i, j))
            points.append(middle + rng.uniform(-0.06, 0.06, 2) @ axes[1:])
            normals.append(normal)
    pairs, points, normals = np.array(pairs), np.array(points), np.array(normals)

    # rows: velocity of the point on the first body minus that on the second; angular velocities in body axes
    axes, R = frames(normals), rotation(turn)
    rows, columns, values = [], [], []
    for side, sign in ((0, 1.0), (1, -1.0)):
        k = np.flatnonzero(pairs[:, side] >= 0)
        b = pairs[k, side]
        arm = points[k] - place[b]
        angular = np.einsum("kji,kaj->kai", R[b], np.cross(arm[:, None, :], axes[k]))
        block = sign * np.concatenate([axes[k], angular], axis=2)
        rows.append(np.broadcast_to((3 * k[:, None] + np.arange(3))[:, :, None], block.shape).ravel())
        columns.append(np.broadcast_to((6 * b[:, None] + np.arange(6))[:, None, :], block.shape).ravel())
        values.append(block.ravel())
    J = sparse.csr_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=(3 * contacts, 6 * n))
    inverse_mass = np.concatenate([1 / np.repeat(mass[:, None], 3, axis=1), 1 / moments], axis=1).ravel()

    v = rng.uniform(0.01, 1.0) * rng.standard_normal((n, 6))
    v[:, 2] -= G0 * 1e-3
    gaps = np.zeros((contacts, 3))
    gaps[:, 0] = np.where(rng.random(contacts) < 0.2, rng.uniform(0, 0.5, contacts), 0.0)
    friction = rng.choice([0.0, 0.3, 0.6, 1.0], contacts, p=[0.1, 0.3, 0.3, 0.3])
    return RandomPile(J, inverse_mass, J @ v.ravel() + gaps.ravel(), friction, place, turn, mass, moments, pairs, points, normals)
