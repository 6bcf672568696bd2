"""The code that Inductor wrote to call the kernels of each graph, as documents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from inductoscope.protocol.report import Phase, TargetReport, Wrapper

_ENDINGS = {"python": "py", "cpp": "cpp"}


@dataclass(frozen=True)
class WrapperDocument:
    """The wrapper of one graph by the name of its document."""

    name: str
    title: str
    wrapper: Wrapper

    @property
    def revision(self) -> str:
        """Something that changes whenever the text does."""
        return hashlib.sha256(self.wrapper.source.encode("utf-8", "surrogatepass")).hexdigest()


def listed(report: TargetReport) -> tuple[WrapperDocument, ...]:
    """All wrappers, in the order of the report; of several with one name the first."""
    found: dict[str, WrapperDocument] = {}
    for wrapper in report.wrappers:
        backward = wrapper.phase is Phase.BACKWARD
        name = f"wrapper {wrapper.graph.replace('/', '_')}{' backward' if backward else ''}"
        ending = _ENDINGS.get(wrapper.language, "txt")
        title = f"wrapper of graph {wrapper.graph}{', backward' if backward else ''}"
        found.setdefault(name, WrapperDocument(f"{name}.{ending}", title, wrapper))
    return tuple(found.values())


def find(report: TargetReport, name: str) -> WrapperDocument | None:
    """The document of that name, None where there is none."""
    return next((document for document in listed(report) if document.name == name), None)
