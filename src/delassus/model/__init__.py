"""Robot models: their description, and loading them."""

from .builder import ModelBuilder
from .load import embedded_names, load
from .model import Model
from .records import (
    Actuator,
    Body,
    ConnectLoop,
    CylindricalLoop,
    DistanceLoop,
    Frame,
    HingeLoop,
    Joint,
    JointLoop,
    Loop,
    PlanarLoop,
    PrismaticLoop,
    Shape,
    UniversalLoop,
    WeldLoop,
)

__all__ = [
    "Actuator",
    "Body",
    "ConnectLoop",
    "CylindricalLoop",
    "DistanceLoop",
    "Frame",
    "HingeLoop",
    "Joint",
    "JointLoop",
    "Loop",
    "Model",
    "ModelBuilder",
    "PlanarLoop",
    "PrismaticLoop",
    "Shape",
    "UniversalLoop",
    "WeldLoop",
    "embedded_names",
    "load",
]
