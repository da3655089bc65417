"""G is a SciPy LinearOperator: conjugate gradients and eigenvalues of a box stack's 360 rows, no matrix anywhere."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg, eigsh

import delassus as dl

model, q, constraints = dl.scenes.load("box-stack")
G = dl.DelassusOperator(model, constraints)
G.update(q)
m = G.shape[0]
print(f"{len(constraints)} contacts, {m} rows, {G.nbytes / 1e3:.0f} kB where a matrix takes {8 * m * m / 1e3:.0f} kB")

# (G + ε) λ = b by conjugate gradients; G + ε is one more operator
damping = 1e-3
damped = LinearOperator(G.shape, matvec=lambda x: G @ x + damping * x, dtype=float)
b = np.random.default_rng(0).standard_normal(m)
steps = []
forces, failed = cg(damped, b, rtol=1e-8, callback=steps.append)
print(f"plain: {len(steps)} iterations")
assert not failed

# the direct inverse at another damping is a good preconditioner
G.damping = 3 * damping
fewer = []
again, failed = cg(damped, b, rtol=1e-8, M=G.inverse, callback=fewer.append)
print(f"with (G + 3ε)⁻¹ before it: {len(fewer)} iterations")
assert not failed
assert len(fewer) < len(steps) / 5
assert np.abs(again - forces).max() < 1e-5 * np.abs(forces).max()

# and with the same damping it is the answer
G.damping = damping
direct = G.solve(b)
error = np.linalg.norm(direct - again) / np.linalg.norm(direct)
print(f"conjugate gradients and the direct inverse differ by {error:.0e}")
assert error < 1e-6

# extreme eigenvalues
largest = eigsh(G, k=1, which="LM", return_eigenvectors=False)[0]
print(f"largest eigenvalue {largest:.3f} 1/kg")
assert np.isclose(largest, np.linalg.eigvalsh(G.to_matrix())[-1], rtol=1e-9)
