"""The addresses of made documents: they survive clients that take them apart."""

from urllib.parse import quote, unquote, urlsplit

import pytest

from inductoscope.server.features.artifacts import Address, parse

PATHS = ["/project/model.py", "/my project/é/модель.py", "/a%2Fb/m.py", "/a?b#c/m.py", r"C:\project\model.py"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("target", ["Model.forward", "step"])
def test_an_address_is_read_back(path, target):
    address = Address(path, target, "triton_poi_fused_add_0.py")
    assert parse(address.uri) == address


@pytest.mark.parametrize("path", PATHS[:2])
def test_an_address_survives_a_client_that_decodes_and_encodes_the_path(path):
    """As VS Code does; it also refuses a path that begins with two slashes."""
    address = Address(path, "Model.forward", "report.md")
    parts = urlsplit(address.uri)
    decoded = unquote(parts.path)
    assert not decoded.startswith("//")
    assert parse(f"{parts.scheme}:{quote(decoded)}") == address


@pytest.mark.parametrize("uri", ["file:///a/b/c", "inductoscope-artifact:/report.md"])
def test_other_addresses_are_not_ours(uri):
    assert parse(uri) is None
