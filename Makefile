# One command each. uv is brought along when the machine has none.
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
RUN := $(UV) run --frozen --quiet
# Compiled once: each server, worker and test process would otherwise spend seconds on compiling what it imports.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check serve bench docs sync
.DEFAULT_GOAL := run

run: sync # the demo: the real bot against an embedded simulated GitHub, to be watched in a browser
	$(RUN) mlm demo

test: sync # every test
	$(RUN) pytest -n 4 --dist worksteal

check: sync # what CI runs beside the tests: style, types, architecture
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) hadolint Dockerfile
	$(RUN) pytest tests/test_project.py

serve: sync # the GitHub App itself; its settings are in docs/operating.md
	$(RUN) mlm serve

bench: sync # speed and memory beside the manual way; rewrites the figures in docs/performance.md
	$(RUN) python benchmarks/bars.py --docs

docs: sync # write the pages that are made from the code
	$(RUN) python docs/generate.py

sync: $(UV)
	@$(UV) sync --frozen --quiet

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv
