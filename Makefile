# One command each. uv is brought along when the machine has none.
UV := $(shell command -v uv 2>/dev/null || echo .uv/bin/uv)
RUN := $(UV) run --frozen --quiet
# Compiled once: each server, worker and test process would otherwise spend seconds on compiling what it imports.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test check serve bench docs fuzz audit sbom sync
.DEFAULT_GOAL := run

run: sync # the demo: the real bot against an embedded simulated GitHub, to be watched in a browser; PORT=8917 for another port
	$(RUN) mlm demo $(if $(PORT),--port $(PORT))

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

#: Seconds for each entry.
FUZZ_S ?= 60
fuzz: $(UV) # look for inputs that break an entry of tests/fuzz; what it finds stands in var/fuzz (Linux on x86-64 only)
	@mkdir -p var/fuzz
	cd var/fuzz && for entry in archives commands logs markdown webhook; do \
		UV_PROJECT_ENVIRONMENT=$(CURDIR)/.cache/fuzz $(abspath $(UV)) run --frozen --quiet --project $(CURDIR) --group fuzz \
			python $(CURDIR)/tests/fuzz/search.py $$entry $(FUZZ_S) || exit 1; \
	done

#: Where PyPI cannot be asked: AUDIT_FLAGS="--vulnerability-service osv", and --osv-url for a copy of OSV's.
AUDIT_FLAGS ?=
audit: $(UV) # known holes in what is installed, as PyPI knows them today; fails as well when PyPI does not say
	@mkdir -p var
	$(UV) export --frozen --quiet --no-dev --no-emit-project --output-file var/requirements.txt
	UV_PROJECT_ENVIRONMENT=.cache/audit $(UV) run --frozen --quiet --only-group audit \
		pip-audit --strict --require-hashes --disable-pip $(AUDIT_FLAGS) --requirement var/requirements.txt

sbom: $(UV) # the bill of materials of what is installed, as CycloneDX
	@mkdir -p var
	$(UV) export --frozen --quiet --no-dev --format cyclonedx1.5 --output-file var/sbom.cdx.json

sync: $(UV)
	@$(UV) sync --frozen --quiet

.uv/bin/uv:
	python3 -m venv .uv
	.uv/bin/pip install --quiet --disable-pip-version-check uv
