# `make demo` and `make test` do all of their own set-up on a machine that has python3, node and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
EXTENSION := vscode-extension
WORKERS ?= 2

.PHONY: demo test test-python test-extension test-editors check lint format types layers fast-tests clients vsix clean

demo: $(VENV)/.product
	$(BIN)/inductoscope check examples/gpt_block.py --device sim:H200 --show kernels

test: lint test-extension test-python test-editors

test-python: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not editor" -n $(WORKERS) --dist loadfile

test-extension: $(EXTENSION)/node_modules/.package-lock.json
	cd $(EXTENSION) && npm run --silent check && npm test --silent

test-editors: $(VENV)/.dev clients vsix
	$(BIN)/python -m pytest -m editor

# The inner loop: under two minutes, no torch process, no editor.
check: lint fast-tests

lint: format types layers

format: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

layers: $(VENV)/.dev
	$(BIN)/lint-imports

fast-tests: $(VENV)/.dev
	$(BIN)/python -m pytest -m "not slow and not editor" -n $(WORKERS) --dist loadfile

# A real VS Code workbench, Chromium and Neovim in a cache folder outside the checkout.
clients:
	bash tests/clients/install.sh

vsix: $(VENV)/.product $(EXTENSION)/node_modules/.package-lock.json
	PYTHON="$(abspath $(BIN)/python)" bash $(EXTENSION)/package.sh

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.product: $(VENV)/bin/python pyproject.toml requirements/torch.txt
	$(PIP) install -r requirements/torch.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.product requirements/dev.txt
	$(PIP) install -r requirements/dev.txt
	touch $@

$(EXTENSION)/node_modules/.package-lock.json: $(EXTENSION)/package-lock.json
	cd $(EXTENSION) && npm ci --no-audit --no-fund --loglevel=error
	touch $@

clean:
	rm -rf $(VENV) $(EXTENSION)/node_modules $(EXTENSION)/dist $(EXTENSION)/bundled $(EXTENSION)/*.vsix
