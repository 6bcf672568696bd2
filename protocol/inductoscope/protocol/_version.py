"""The one version number of the distribution, the server and the extension."""

__version__ = "0.1.0"
