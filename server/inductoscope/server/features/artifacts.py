"""Read-only documents made of results: a kernel's source, a target's report.

The address is `inductoscope-artifact:/FILE/TARGET/NAME`, so that the same kernel of the same target keeps its address
and an open view can be refreshed.  The slashes of FILE stay slashes: clients take percent-encoding apart and put it
together again, and one that does so with `%2F` arrives at another address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote, urlsplit

from inductoscope.protocol.report import Kernel, KernelLanguage
from inductoscope.server.features import document
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.snapshot import Snapshot, TargetView

SCHEME = "inductoscope-artifact"
REPORT = "report.md"
_DRIVE = re.compile(r"/[A-Za-z]:")
_SUFFIX = {KernelLanguage.TRITON: ".py", KernelLanguage.CPP: ".cpp", KernelLanguage.EXTERN: ".txt"}


@dataclass(frozen=True)
class Address:
    """What a document is made of."""

    path: str
    target: str
    name: str

    @property
    def uri(self) -> str:
        """The address as a URI."""
        file = quote(self.path.lstrip("/"))
        return f"{SCHEME}:/{file}/{quote(self.target, safe='')}/{quote(self.name, safe='')}"


def parse(uri: str) -> Address | None:
    """The address in a URI, or None when it is not one of ours."""
    parts = urlsplit(uri)
    pieces = parts.path.rsplit("/", 2)
    if parts.scheme != SCHEME or len(pieces) != 3:
        return None
    path, target, name = map(unquote, pieces)
    return Address(path[1:] if _DRIVE.match(path) else path, target, name)


def kernel_address(view: TargetView, kernel: Kernel) -> Address:
    """Where a kernel's source is shown."""
    return Address(view.target.file, view.target.name, kernel.name + _SUFFIX[kernel.language])


def report_address(view: TargetView) -> Address:
    """Where a target's report is shown."""
    return Address(view.target.file, view.target.name, REPORT)


def revision(snapshot: Snapshot, address: Address) -> tuple[int, ...]:
    """Something that changes whenever the text of a document may."""
    view = snapshot.find(address.path, address.target)
    if view is None:
        return ()
    results = (*view.results, *((view.measured.result,) if view.measured else ()))
    return tuple(result.generation for result in results)


def content(snapshot: Snapshot, address: Address) -> str:
    """The text of a document; a sentence when there is nothing to show yet."""
    view = snapshot.find(address.path, address.target)
    result = view.good or view.failed if view else None
    if view is None or result is None:
        return f"Nothing is known of {address.target} now: open its file and check it.\n"
    if address.name == REPORT:
        blocks = document.document(view, result.report, snapshot.now - result.at)
        return write(blocks, Markup.MARKDOWN) + "\n"
    for kernel in result.report.kernels:
        if kernel_address(view, kernel).name == address.name:
            return kernel.source or f"{kernel.name} is a library call: there is no generated source.\n"
    return f"{address.target} has no kernel of this name any more.\n"
