"""The Delassus operator of a URDF arm that touches a table: products, damped inverse, and the dense definition beside them."""

import numpy as np

import delassus as dl

LINK = """<link name="{name}"><inertial><origin xyz="0 0 0.2"/><mass value="2"/>
  <inertia ixx="0.03" iyy="0.03" izz="0.002" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="0 0 {z}"/>
  <axis xyz="{axis}"/><limit lower="-3" upper="3" effort="50" velocity="5"/></joint>"""
URDF = (
    '<robot name="arm"><link name="base"/>'
    + "".join(LINK.format(name=name) for name in ("shoulder", "upper", "lower"))
    + JOINT.format(name="yaw", parent="base", child="shoulder", z=0.1, axis="0 0 1")
    + JOINT.format(name="lift", parent="shoulder", child="upper", z=0.4, axis="0 1 0")
    + JOINT.format(name="elbow", parent="upper", child="lower", z=0.4, axis="0 1 0")
    + "</robot>"
)

model = dl.load(URDF)  # a path works too
print(model)
q = np.array([0.3, 0.8, 1.1])

# the tip touches a table, and the elbow is at a limit: four rows
tip = dl.PointContact(model, "lower", point=(0, 0, 0.4), friction=0.6)
stop = dl.JointLimit(model, "elbow", "upper")
G = dl.DelassusOperator(model, [tip, stop])  # symbolic work: order, fill, memory
G.update(q)  # numeric work at q
print(G.explain())

# G x without a matrix, beside J M⁻¹ Jᵀ
J = np.vstack([G.jacobian @ e for e in np.eye(model.nv)]).T
dense = J @ np.linalg.solve(dl.mass_matrix(model, q), J.T)
x = np.array([1.0, -0.2, 0.3, 0.5])
print("G x     ", G @ x)
assert np.allclose(G @ x, dense @ x, rtol=1e-12)
assert np.allclose(G.to_matrix(), dense, rtol=1e-10, atol=1e-12)

# four rows on three joints: G is singular, (G + ε)⁻¹ is not
G.damping = 1e-4
forces = G.solve(x)
print("(G+ε)⁻¹x", forces)
assert np.allclose(dense @ forces + 1e-4 * forces, x, atol=1e-9)
