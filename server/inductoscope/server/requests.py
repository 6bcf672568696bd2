"""From a target to a run: what is asked of a worker, which texts its answer is about, and what to look up before."""

from __future__ import annotations

from dataclasses import replace

from inductoscope.protocol.devices import DeviceKind
from inductoscope.protocol.report import Rung
from inductoscope.server import meaning, recall, reuse
from inductoscope.server.assembly import texts
from inductoscope.server.documents import read_source
from inductoscope.server.graph import Edges
from inductoscope.server.positions import Text
from inductoscope.server.recall import Program, Question
from inductoscope.server.runs import Plan, Purpose
from inductoscope.server.state import State
from inductoscope.server.workers.run import RunOutcome, RunRequest


def plan(state: State, key: str, purpose: Purpose, generation: int, cause: str) -> Plan:
    """The run of a target as things are now."""
    target, settings = state.targets[key].target, state.settings(key)
    request = RunRequest(
        target=target,
        device=_real(settings.device) if purpose is Purpose.MEASURE else settings.device,
        own=settings.own if purpose is Purpose.CHECK else None,
        rung=Rung.MEASURE if purpose is Purpose.MEASURE else settings.rung,
        overlays=state.documents.overlays(),
        timeout_s=settings.timeout_s,
        memory_bytes=settings.memory_bytes,
        cwd=state.folders.working_folder(target.file),
        search_paths=state.folders.search_paths(target.file),
        assembling=texts.order(at_once=1, place=state.looked_at.get(target.file)),
        reuse=reuse.order(),
        probe_seconds=settings.probe.seconds,
    )
    closure = state.programs.closure(target)
    open_files = {path: document.text for path, document in state.documents.by_path.items() if path in closure}
    return Plan(
        request=request,
        purpose=purpose,
        generation=generation,
        version=state.documents.by_path[target.file].version,
        texts=open_files,
        closure=closure,
        fingerprint=state.programs.fingerprint(target, closure),
        cause=cause,
    )


def question(state: State, plan: Plan) -> Question | None:
    """What to look up before the run, and to keep it under after; None where its interpreter is not there."""
    target = plan.request.target
    words = state.folders.runner(target.file).interpreter(target.file)
    if words is None:
        return None

    def text(path: str) -> str | None:
        known = plan.texts.get(path)
        return state.read(path) if known is None else known.source

    closure = state.programs.closure(target, Edges.READ)
    return Question(plan.request, words, Program(closure, state.programs.meanings, text))


def completed(state: State, plan: Plan, outcome: RunOutcome) -> Plan:
    """The plan of a run that has answered: with the files that it really imported, and all texts that it speaks of."""
    if outcome.files:
        closure = state.programs.learn(plan.request.target, plan.closure, outcome.files)
        fingerprint = state.programs.fingerprint(plan.request.target, closure)
        plan = replace(plan, closure=closure, fingerprint=fingerprint)
    known = dict(plan.texts)
    for path in recall.mentioned(outcome.report) & plan.closure.keys() - known.keys():
        source = read_source(path)
        if source is not None and meaning.name_of([source]) == plan.closure[path].exact:
            known[path] = Text(source)
    return replace(plan, texts=known)


def _real(device: str) -> str:
    """A device that something can be measured on: a simulated one gives way to what the machine has."""
    return "auto" if device.startswith(f"{DeviceKind.SIMULATED.value}:") else device
