# Every command of the project. `make` alone lists them.
SHELL := /bin/sh
.DEFAULT_GOAL := help
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV
export PYTHONUNBUFFERED := 1

PY := .venv/bin/python
# The demo needs little; it takes the development environment if that is there already.
DEMO_VENV := $(if $(wildcard .venv/.complete.json),.venv,.venv-demo)
DEV_PARTS := --extra sidecar --extra otel --extra conformance --group test --group lint
DEMO_PARTS := $(if $(filter .venv,$(DEMO_VENV)),$(DEV_PARTS),--extra sidecar --extra conformance)
# Half of the tests' time is waiting, so they run side by side; those that measure short times have a round with nothing heavy beside them.
SPREAD := --dist loadfile --no-loadscope-reorder --numprocesses
SHORT := tests/sdk tests/conformance/test_lastword.py
FIND_PYTHON = python=$$(scripts/environment/find_python) || exit 1

# Live tests measure time on real servers; nothing may run beside them.
.NOTPARALLEL:
.PHONY: help demo demo-vllm test unit java live faults check bench overload soak scoreboard venv engine clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## real words behind the sidecar, then the silent endings, with the stock client and with lastword; needs Python 3.11, git, make
	@$(FIND_PYTHON); "$$python" scripts/environment/dev_env.py $(DEMO_VENV) $(DEMO_PARTS)
	@$(FIND_PYTHON); words=$$("$$python" scripts/scoreboard/environments.py llama-cpp); status=$$?; set --; \
	if [ $$status = 0 ]; then \
		set -- --engine "'$$words' tests/conformance/servers/llama_cpp.py 0" --engine-name "llama.cpp with SmolLM2-135M"; \
	elif [ $$status = 130 ]; then exit 130; \
	else echo "demo: no llama.cpp here (see above): the embedded engine, which has no model, speaks in its place" >&2; fi; \
	$(DEMO_VENV)/bin/python -m lastword.demo "$$@"

demo-vllm: venv ## the same in front of a real vLLM with SmolLM2 on the CPU (Linux x86-64; 7 GB the first time)
	@$(FIND_PYTHON); "$$python" scripts/environment/engine_env.py --smollm2 >/dev/null
	@$(PY) scripts/environment/with_vllm.py --model smollm2 -- $(PY) -m lastword.demo --base-url {base_url} --model m

test: venv engine ## the whole suite, real vLLM included (Linux x86-64; first time 6 GB and some minutes more)
	@$(PY) scripts/check
	@$(MAKE) --no-print-directory unit java live

unit: venv ## all tests that need no vLLM, and the coverage gate of the pure core
	@$(PY) -m coverage erase
	$(PY) -m coverage run -m pytest tests/unit
	$(PY) -m coverage report
	$(PY) -m pytest $(SHORT) $(SPREAD) 3
	$(PY) -m pytest tests $(patsubst %,--ignore=%,tests/live tests/unit $(SHORT)) $(SPREAD) 4

java: venv ## the Java client: build and tests, on Maven's JDK and the newest other one (JDK 17, Maven)
	@$(PY) scripts/java_tests.py

live: venv engine ## the tests on real vLLM
	$(PY) -m pytest tests/live --verbose

faults: venv engine ## the fault tests on real vLLM ten times in a row, counted by fault (an hour)
	@$(PY) scripts/fault_rounds.py $(FAULTS)

check: venv ## linters, types, generated files, house rules
	@$(PY) scripts/check

bench: venv engine ## what lastword costs: a client's CPU per chunk; vLLM's tokens/s with the shim; the sidecar (docs/performance.md)
	@$(PY) scripts/bench $(BENCH)

overload: venv engine ## real vLLM at twice its capacity, bare, with its own limit and with the shim (7 minutes; docs/overload.md)
	@$(PY) scripts/overload $(OVERLOAD)

soak: venv ## a thousand streams at once through the shim, a third of them dropped: is anything left behind?
	@$(PY) scripts/soak $(SOAK)

scoreboard: venv ## play the conformance suite against the implementations that it knows; ONLY=NAME,… for some
	@$(PY) scripts/scoreboard/play.py --only "$(ONLY)"

venv: ## only make or mend .venv
	@$(FIND_PYTHON); "$$python" scripts/environment/dev_env.py .venv $(DEV_PARTS)

engine: ## only make or mend the cached vLLM environment
	@$(FIND_PYTHON); "$$python" scripts/environment/engine_env.py >/dev/null

clean: ## remove what these commands made in the checkout (the engine cache in ~/.cache/lastword stays)
	rm -rf .venv .venv-demo .venv*.lock .venv*.log .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage .coverage.* dist build
	find sdk server_shim tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
