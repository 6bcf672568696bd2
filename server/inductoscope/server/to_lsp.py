"""Everything between the server's own values and LSP's: what a client can do, and findings, lenses and so on for it.

Own lines are 1-based and own columns code points; LSP lines are 0-based and columns in the client's unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import attrs
from lsprotocol import types

from inductoscope.protocol import codec
from inductoscope.protocol.report import Finding, Severity
from inductoscope.server.diagnostics import Shown
from inductoscope.server.documents import path_of
from inductoscope.server.features import artifacts
from inductoscope.server.features.actions import Action
from inductoscope.server.features.artifacts import Spot
from inductoscope.server.features.commands import Command
from inductoscope.server.features.fixes import Fix
from inductoscope.server.features.hover import Hover
from inductoscope.server.features.inlay_hints import InlayHint
from inductoscope.server.features.lens import Lens
from inductoscope.server.features.markup import Markup, write
from inductoscope.server.positions import Encoding, Text, to_client
from inductoscope.server.settings import Hints

SOURCE = "inductoscope"

SEMANTIC_TOKENS = "textDocument/semanticTokens"
"""The name under which semantic tokens are registered, which is none of their requests."""

PROVIDERS = {
    types.TEXT_DOCUMENT_DEFINITION: "definition_provider",
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: "document_symbol_provider",
    types.TEXT_DOCUMENT_FOLDING_RANGE: "folding_range_provider",
    types.TEXT_DOCUMENT_DOCUMENT_LINK: "document_link_provider",
    SEMANTIC_TOKENS: "semantic_tokens_provider",
}
"""The announcement of each method about generated documents in `ServerCapabilities`."""


_SEVERITIES = {
    Severity.ERROR: types.DiagnosticSeverity.Error,
    Severity.WARNING: types.DiagnosticSeverity.Warning,
    Severity.INFORMATION: types.DiagnosticSeverity.Information,
    Severity.HINT: types.DiagnosticSeverity.Hint,
}


@dataclass(frozen=True)
class Profile:
    """What a client can do, as far as it matters here.  The flags are LSP's own.

    `registers` are the methods about generated documents that the client lets itself be told of later.
    """

    encoding: Encoding = Encoding.UTF16
    hover: Markup = Markup.PLAIN
    related: bool = False
    disabled_actions: bool = False
    action_literals: bool = False
    lens_refresh: bool = False
    hint_refresh: bool = False
    progress: bool = False
    configuration: bool = False
    show_document: bool = False
    content: bool = False
    watches_files: bool = False
    nested_symbols: bool = False
    resolves_lenses: bool = False
    resolves_hints: bool = False
    tells_settings: bool = False
    registers: frozenset[str] = frozenset()


def profile(capabilities: types.ClientCapabilities, encoding: str | None) -> Profile:
    """What the client said it can do."""
    document = capabilities.text_document or types.TextDocumentClientCapabilities()
    workspace = capabilities.workspace or types.WorkspaceClientCapabilities()
    window = capabilities.window or types.WindowClientCapabilities()
    formats = (document.hover.content_format if document.hover else None) or []
    action = document.code_action
    return Profile(
        encoding=Encoding(encoding or Encoding.UTF16.value),
        hover=Markup.MARKDOWN if types.MarkupKind.Markdown in formats else Markup.PLAIN,
        related=bool(document.publish_diagnostics and document.publish_diagnostics.related_information),
        disabled_actions=bool(action and action.disabled_support),
        action_literals=bool(action and action.code_action_literal_support),
        hint_refresh=bool(workspace.inlay_hint and workspace.inlay_hint.refresh_support),
        lens_refresh=bool(workspace.code_lens and workspace.code_lens.refresh_support),
        progress=bool(window.work_done_progress),
        configuration=bool(workspace.configuration),
        show_document=bool(window.show_document and window.show_document.support),
        content=workspace.text_document_content is not None,
        watches_files=bool(
            workspace.did_change_watched_files and workspace.did_change_watched_files.dynamic_registration
        ),
        resolves_lenses=_resolves(document.code_lens, "command"),
        resolves_hints=_resolves(document.inlay_hint, "tooltip", "label.location"),
        tells_settings=bool(
            workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration
        ),
        nested_symbols=bool(document.document_symbol and document.document_symbol.hierarchical_document_symbol_support),
        registers=frozenset(method for method, said in _registrable(document, workspace) if said),
    )


def _resolves(capability: Any, *properties: str) -> bool:
    """Whether the client asks for these parts of something when it needs them."""
    support = capability.resolve_support if capability is not None else None
    return support is not None and set(properties) <= set(support.properties)


def _registrable(
    document: types.TextDocumentClientCapabilities, workspace: types.WorkspaceClientCapabilities
) -> Iterator[tuple[str, bool]]:
    """Whether each method about generated documents can be registered dynamically."""
    capabilities: dict[str, Any] = {
        types.TEXT_DOCUMENT_DEFINITION: document.definition,
        types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: document.document_symbol,
        types.TEXT_DOCUMENT_FOLDING_RANGE: document.folding_range,
        types.TEXT_DOCUMENT_DOCUMENT_LINK: document.document_link,
        SEMANTIC_TOKENS: document.semantic_tokens,
        types.WORKSPACE_TEXT_DOCUMENT_CONTENT: workspace.text_document_content,
    }
    for method, capability in capabilities.items():
        yield method, bool(capability and capability.dynamic_registration)


WHOLE = Profile()
"""A client that is given everything at once."""


@dataclass(frozen=True)
class Where:
    """What is needed to place things: the URI and the text of any file, and the client's unit."""

    uri: Callable[[str], str]
    text: Callable[[str], Text]
    encoding: Encoding

    def position(self, path: str, line: int, column: int) -> types.Position:
        """An own place as a position."""
        return types.Position(line - 1, to_client(self.text(path).line(line), column, self.encoding))

    def span(self, finding: Finding) -> types.Range:
        """The range of a finding; one without width covers the line's code."""
        start = self.position(finding.file, finding.line, finding.column)
        end = self.position(finding.file, max(finding.end_line, finding.line), finding.end_column)
        if (end.line, end.character) > (start.line, start.character):
            return types.Range(start, end)
        return self.line(finding.file, finding.line)

    def line(self, path: str, line: int) -> types.Range:
        """A line from its first to its last visible character."""
        text = self.text(path).line(line)
        first = len(text) - len(text.lstrip())
        last = max(len(text.rstrip()), first)
        return types.Range(self.position(path, line, first), self.position(path, line, last))


def location(spot: Spot, where: Where) -> types.Location:
    """A line of a file of the program, or of a document made of results, whose columns nobody knows here."""
    if spot.path is not None:
        return types.Location(where.uri(spot.path), where.line(spot.path, spot.line))
    start = types.Position(spot.line - 1, 0)
    return types.Location(spot.uri or "", types.Range(start, start))


def diagnostic(shown: Shown, where: Where, client: Profile) -> types.Diagnostic:
    """A finding as a diagnostic."""
    finding = shown.finding
    related = [
        types.DiagnosticRelatedInformation(
            types.Location(where.uri(item.file), where.line(item.file, item.line)), item.message
        )
        for item in finding.related
    ]
    return types.Diagnostic(
        range=where.span(finding),
        message=_message(finding),
        severity=_SEVERITIES[finding.severity],
        code=finding.code,
        code_description=_description(finding, client),
        source=SOURCE,
        related_information=related if related and client.related else None,
        data={
            "target": shown.target,
            "device": shown.device,
            "id": finding.id,
            "outcome": codec.to_json(finding.outcome),
            "hints": list(finding.hints),
            "guard_family": finding.guard_family,
            "function": finding.function,
            "rung": finding.rung.value,
        },
    )


def _description(finding: Finding, client: Profile) -> types.CodeDescription | None:
    """Torch's own page, else ours for clients that can open it."""
    if finding.link is not None:
        return types.CodeDescription(finding.link)
    return types.CodeDescription(artifacts.page_of_code(finding.code).uri) if client.content else None


def _message(finding: Finding) -> str:
    if finding.id is None or finding.id in finding.message:
        return finding.message
    return f"{finding.message} ({finding.id})"


def hover(found: Hover, path: str, where: Where, client: Profile) -> types.Hover:
    """A hover in the form that the client can show."""
    return types.Hover(
        types.MarkupContent(types.MarkupKind(client.hover.value), write(found.blocks, client.hover)),
        where.line(path, found.line),
    )


@dataclass(frozen=True)
class Kept:
    """What a lens or a hint carries for when the client asks for the rest of it."""

    uri: str
    key: str


def kept(data: Any) -> Kept | None:
    """What was carried, None for anything else."""
    uri, key = (data.get("uri"), data.get("key")) if isinstance(data, dict) else (None, None)
    return Kept(uri, key) if isinstance(uri, str) and isinstance(key, str) else None


def lens_key(lens: Lens) -> str:
    """What tells a lens from the others of its file."""
    return f"{lens.line} {lens.place}"


def code_lens(lens: Lens, path: str, where: Where, client: Profile) -> types.CodeLens:
    """A lens; one that does nothing has an empty command, which clients show as plain text."""
    if client.resolves_lenses:
        return types.CodeLens(where.line(path, lens.line), data={"uri": where.uri(path), "key": lens_key(lens)})
    there = command(lens.command, where) if lens.command else types.Command(lens.title, "")
    return types.CodeLens(where.line(path, lens.line), command=there)


def hint_key(hint: InlayHint) -> str:
    """What tells a hint from the others of its file, wherever its line went."""
    return f"{hint.category.value} {hint.label}"


def inlay_hint(hint: InlayHint, path: str, where: Where) -> types.InlayHint:
    """A hint; shapes are of the kind that clients show like the types of variables."""
    position = where.position(path, hint.line, hint.column)
    is_type = hint.category is Hints.SHAPES
    return types.InlayHint(
        position,
        hint.label,
        kind=types.InlayHintKind.Type if is_type else None,
        padding_left=None if is_type else True,
        data={"uri": where.uri(path), "key": hint_key(hint)},
    )


def whole_hint(hint: InlayHint, path: str, where: Where, client: Profile, leads_to: str | None) -> types.InlayHint:
    """A hint with its tooltip, and a link to the document with the URI `leads_to`."""
    label: str | list[types.InlayHintLabelPart] = hint.label
    if leads_to is not None:
        start = types.Position(0, 0)
        label = [types.InlayHintLabelPart(hint.label, location=types.Location(leads_to, types.Range(start, start)))]
    return attrs.evolve(inlay_hint(hint, path, where), label=label, tooltip=hint.tooltip)


def command(item: Command, where: Where) -> types.Command:
    """A command with its arguments."""
    document = {} if item.document is None else {"document": item.document}
    arguments = [{"uri": where.uri(item.path), "target": item.target, **document}]
    return types.Command(item.title, item.name.value, arguments=arguments)


def code_action(action: Action, where: Where, client: Profile) -> types.CodeAction:
    """A code action."""
    return types.CodeAction(
        title=action.title,
        kind=action.kind.value,
        disabled=types.CodeActionDisabled(action.disabled) if action.disabled else None,
        command=command(action.command, where) if action.command and not action.disabled else None,
        diagnostics=[diagnostic(shown, where, client) for shown in action.fix.answers] if action.fix else None,
        edit=_edit(action.fix, where) if action.fix and not action.disabled else None,
        is_preferred=True if action.fix and action.fix.preferred else None,
    )


def _edit(fix: Fix, where: Where) -> types.WorkspaceEdit:
    edits = [
        types.TextEdit(
            types.Range(
                where.position(fix.path, edit.line, edit.column),
                where.position(fix.path, edit.end_line, edit.end_column),
            ),
            edit.text,
        )
        for edit in fix.edits
    ]
    return types.WorkspaceEdit(changes={where.uri(fix.path): edits})


def kinds(only: Sequence[types.CodeActionKind | str] | None) -> tuple[str, ...] | None:
    """Kinds of code actions as a client names them, known to LSP or not."""
    return None if only is None else tuple(str(getattr(item, "value", item)) for item in only)


class BadArgumentsError(ValueError):
    """What a client sent does not fit; the message is a sentence."""


@dataclass(frozen=True)
class Subject:
    """What a command or a request of our own is about."""

    path: str
    target: str | None = None
    version: int | None = None
    document: str | None = None


def subject(value: Any) -> Subject:
    """The subject in `{"uri": …, "target"?: …, "version"?: …, "document"?: …}`.  Raises `BadArgumentsError`."""
    value = value if isinstance(value, dict) else {}
    uri, target, version = value.get("uri"), value.get("target"), value.get("version")
    document = value.get("document")
    path = path_of(uri) if isinstance(uri, str) else None
    if path is None:
        raise BadArgumentsError('Expected an object with the "uri" of a file.')
    if not isinstance(target, str | None) or not isinstance(version, int | None):
        raise BadArgumentsError('"target" should be a string and "version" a whole number.')
    if not isinstance(document, str | None):
        raise BadArgumentsError('"document" should be a string.')
    return Subject(path, target, version, document)
