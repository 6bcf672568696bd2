"""What is run again, what is answered from earlier runs and what is shown, step by step: see `scenarios/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from incremental.script import Scenario, parse, play

FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
SCENARIOS = [(path.stem, scenario) for path in FILES for scenario in parse(path.read_text())]
TITLES = [f"{stem}: {scenario.title}" for stem, scenario in SCENARIOS]


@pytest.mark.parametrize("scenario", [scenario for _, scenario in SCENARIOS], ids=TITLES)
async def test_scenario(scenario: Scenario, tmp_path: Path) -> None:
    await play(scenario, tmp_path)


def test_each_scenario_has_files_expectations_and_a_title_of_its_own() -> None:
    for stem, scenario in SCENARIOS:
        assert scenario.files and any(step.expected for step in scenario.steps), f"{stem}: {scenario.title}"
    assert len({scenario.title for _, scenario in SCENARIOS}) == len(SCENARIOS)
