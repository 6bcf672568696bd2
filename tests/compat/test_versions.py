"""Which version of torch gets which adapter, and what is said of one that is too old or too new."""

from __future__ import annotations

import pytest

from inductoscope.compiler.compat import versions


@pytest.mark.parametrize(
    ("version", "series"),
    [
        ("2.13.0+cpu", (2, 13)),
        ("2.11.0a0+git1234", (2, 11)),
        ("2.15.0.dev1+cu130", (2, 15)),
        ("unknown", (0, 0)),
    ],
)
def test_the_series_is_read_from_the_version(version: str, series: versions.Series) -> None:
    assert versions.series_of(version) == series


def test_every_supported_version_has_an_adapter_of_its_own() -> None:
    assert [one.series for one in versions.ADAPTERS] == [(2, minor) for minor in range(11, 16)]
    assert all(versions.adapter_for(f"{versions.text(one.series)}.1+cu130") is one for one in versions.ADAPTERS)


def test_an_unknown_newer_version_is_treated_like_the_newest_known_one_with_a_warning() -> None:
    for version in ("2.16.0", "3.0.0"):
        assert versions.adapter_for(version) is versions.ADAPTERS[-1]
        assert version in (versions.newer_than_known(version) or "")
    assert versions.newer_than_known("2.15.2") is None


def test_an_older_version_is_too_old() -> None:
    assert versions.too_old("2.10.0")
    assert versions.too_old("unknown")
    assert not versions.too_old("2.11.0")
