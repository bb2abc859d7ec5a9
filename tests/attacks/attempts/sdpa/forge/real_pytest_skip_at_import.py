# pytest.skip at import, as a test module would.
# outcome: ungraded
try:
    import pytest
except ImportError:
    raise RuntimeError("no pytest, so no skip") from None

pytest.skip("nothing to see", allow_module_level=True)
