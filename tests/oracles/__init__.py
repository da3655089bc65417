"""Independent references: dense, obvious NumPy and peer engines. Nothing here imports the compiled core."""
