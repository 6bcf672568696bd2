"""The graph of dependencies: which targets depend on which files, directly or through what those import.

Edges come from reading the files and from what runs really imported.  Files are read when they are first reached and
again after somebody says that they changed.  Knows neither documents nor results: texts come from a function.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import islice
from typing import Any

from inductoscope.server import imports, meaning
from inductoscope.server.imports import Contents
from inductoscope.server.meaning import Meaning

Reader = Callable[[str], "str | None"]
"""The text of a file, unsaved text included, or None when there is no such file."""

Roots = tuple[str, ...]
"""Folders that absolute imports are looked up in, besides those that follow from the importing file."""

FILE_LIMIT = 500
"""Files after which a closure stops growing; a workspace that large is better served by an explicit check."""


class Edges(enum.Enum):
    """Which edges count."""

    READ = "read"  # what reading the files finds
    ALL = "all"  # and what runs imported


class Dependencies:
    """Files that import files.  An edge leads from the importing file to the imported one."""

    def __init__(self, read: Reader) -> None:
        self._read = read
        self._contents: dict[str, Contents | None] = {}
        self._earlier: dict[str, Contents] = {}
        self._found: dict[str, dict[Roots, tuple[str, ...]]] = {}
        self._ran: dict[str, tuple[str, ...]] = {}

    def closure(self, file: str, roots: Roots, edges: Edges = Edges.ALL) -> dict[str, Meaning]:
        """What `file` and every file that it reaches say, by path; files that are not there are left out."""
        reached, waiting = {file: None}, [file]
        while waiting and len(reached) < FILE_LIMIT:
            current = waiting.pop()
            for imported in self._successors(current, roots, edges):
                if imported not in reached:
                    reached[imported] = None
                    waiting.append(imported)
        return self.meanings(islice(reached, FILE_LIMIT))

    def meanings(self, paths: Iterable[str]) -> dict[str, Meaning]:
        """What these files say, by path; files that are not there are left out."""
        contents = ((path, self._contents_of(path)) for path in paths)
        return {path: known.meaning for path, known in contents if known is not None}

    def learn(self, file: str, files: Iterable[str]) -> None:
        """A run of a target in `file` imported these files, whatever can be read of it; those that are gone by now
        were made by the run itself."""
        self._ran[file] = tuple(
            dict.fromkeys(path for path in files if path != file and self._contents_of(path) is not None)
        )
        self._connect(file)

    def changed(self, paths: Iterable[str]) -> None:
        """These files say something else, came into being or are gone."""
        for path in paths:
            known = self._contents.pop(path, None)
            if known is not None:
                self._earlier[path] = known
            if (known is None) != (self._read(path) is None):
                self._found.clear()  # a file that came or went may be what any import means
            self._found.pop(path, None)

    def changed_anywhere(self) -> None:
        """Any file may say something else."""
        self._earlier.update((path, known) for path, known in self._contents.items() if known is not None)
        self._contents.clear()
        self._found.clear()

    def retain(self, files: Iterable[str]) -> None:
        """Forget what none of these files reaches."""
        kept = {path for file in files if file in self._graph for path in self._reached(file)}
        self._graph.remove_nodes_from([path for path in self._graph if path not in kept])
        self._contents = {path: known for path, known in self._contents.items() if path in kept}
        self._earlier = {path: known for path, known in self._earlier.items() if path in kept}
        self._found = {path: found for path, found in self._found.items() if path in kept}
        self._ran = {path: files for path, files in self._ran.items() if path in kept}

    def dependents(self, paths: Iterable[str]) -> frozenset[str]:
        """These files and every file that reaches one of them, as far as closures have been asked for."""
        import networkx

        known = [path for path in paths if path in self._graph]
        return frozenset(known).union(*(networkx.ancestors(self._graph, path) for path in known))

    def reached(self, file: str) -> frozenset[str]:
        """A file and all that it reached when last asked, also those that are not there any more."""
        return frozenset(self._reached(file)) if file in self._graph else frozenset({file})

    @property
    def files(self) -> frozenset[str]:
        """Every file that a closure has reached or a run has imported, also one that is not there any more."""
        return frozenset(self._graph)

    @cached_property
    def _graph(self) -> Any:
        # Importing networkx takes a tenth of a second, which must not be added to the start of the server.
        import networkx

        return networkx.DiGraph()

    def _reached(self, file: str) -> set[str]:
        import networkx

        return {file, *networkx.descendants(self._graph, file)}

    def _successors(self, path: str, roots: Roots, edges: Edges) -> Iterable[str]:
        contents = self._contents_of(path)
        by_roots = self._found.setdefault(path, {})
        if roots not in by_roots:
            by_roots[roots] = () if contents is None else tuple(imports.files_of(path, contents.imports, roots))
            self._connect(path)
        return by_roots[roots] if edges is Edges.READ else list(self._graph.successors(path))

    def _connect(self, path: str) -> None:
        """Draw the edges of a file anew: what reading found with any roots, and what runs imported."""
        read = (file for files in self._found.get(path, {}).values() for file in files)
        targets = {*read, *self._ran.get(path, ())} - {path}
        self._graph.add_node(path)
        self._graph.remove_edges_from([(path, gone) for gone in set(self._graph.successors(path)) - targets])
        self._graph.add_edges_from((path, target) for target in targets)

    def _contents_of(self, path: str) -> Contents | None:
        if path not in self._contents:
            source, earlier = self._read(path), self._earlier.pop(path, None)
            if source is not None and earlier is not None and earlier.meaning.exact == meaning.name_of([source]):
                self._contents[path] = earlier  # a save may have changed any file, and most often changed one
            else:
                self._contents[path] = None if source is None else imports.read(source, path)
        return self._contents[path]


def as_of(then: Mapping[str, Meaning], now: Mapping[str, Meaning]) -> dict[str, Meaning]:
    """The closure that a run was about, with the files that only the run itself told of as they are now."""
    return {**now, **then}
