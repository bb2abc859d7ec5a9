"""Which files are kept from an attempt because they are ours."""

from __future__ import annotations

from pathlib import Path

import attn_kata
from attn_kata.sandbox import readable


def test_the_package_is_denied_and_not_the_folder_that_it_lies_in():
    """Installed, it lies in site-packages, beside torch."""
    package = Path(attn_kata.__file__).resolve().parent

    assert str(package) in readable.own_files()
    assert str(package.parent) not in readable.own_files()
