"""The processor, and the builds of the core. Private."""

kind: str

def features() -> list[str]:
    """Names of the extensions that the processor and the operating system offer."""

def builds() -> list[tuple[str, list[str]]]:
    """Name and features of every build of the core, the fastest last."""
