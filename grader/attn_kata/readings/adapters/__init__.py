"""The Python that makes code an attempt under its reading. It runs in the attempt process."""
