# Two commands matter: `make demo` and `make test`. `make help` lists all of them.
#
# PYTHON       the interpreter to build the environments from (3.10 or newer)
# PIP_ARGS     further arguments for pip, such as --no-cache-dir
# PYTEST_ARGS  further arguments for pytest, such as -k NAME
#
# A machine without an NVIDIA GPU needs only torch's CPU build, which is much smaller.
# Where your package index does not offer it, name PyTorch's CPU wheel index:
#     make demo PIP_EXTRA_INDEX_URL=…
# That and the like (PIP_INDEX_URL, PIP_FIND_LINKS) are environment variables of pip,
# so the replay in a fresh environment sees them too; it does not see PIP_ARGS.

PYTHON ?= python3
PIP_ARGS ?=
PYTEST_ARGS ?=

# A file stays on one worker, for its tests share what they made; conftest.py orders them.
IN_PARALLEL = -n 2 --dist loadfile --no-loadscope-reorder

TEST_VENV = .venv
DEMO_VENV = .venv-demo
REQUIREMENTS = pyproject.toml constraints.txt
SOURCES = $(shell find reprobundle schema -type f ! -name '*.pyc' 2>/dev/null)

.PHONY: help demo test test-slow clean python

help:
	@echo "make demo       pack a training run, verify it, replay it, verify again"
	@echo "make test       lint, types, import contracts and all tests but the slow ones"
	@echo "make test-slow  the tests that take minutes"
	@echo "make clean      remove what these targets made"

demo: $(DEMO_VENV)/ready
	@sh examples/demo.sh $(DEMO_VENV)/bin build/demo

test: $(TEST_VENV)/ready
	$(TEST_VENV)/bin/ruff check .
	$(TEST_VENV)/bin/ruff format --check .
	$(TEST_VENV)/bin/mypy
	$(TEST_VENV)/bin/lint-imports
	$(TEST_VENV)/bin/pytest $(IN_PARALLEL) -m "not slow" $(PYTEST_ARGS)

test-slow: $(TEST_VENV)/ready
	$(TEST_VENV)/bin/pytest -m slow $(PYTEST_ARGS)

clean:
	rm -rf $(TEST_VENV) $(DEMO_VENV) build dist examples/*/out
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find reprobundle tests examples -name __pycache__ -type d -prune -exec rm -rf {} +

# The file `ready` marks an environment that is complete: a broken install leaves none,
# and the next call goes on from there.

$(TEST_VENV)/ready: $(REQUIREMENTS) | python
	$(call make_venv,$(TEST_VENV))
	$(TEST_VENV)/bin/python -m pip install $(PIP_ARGS) -c constraints.txt -e '.[torch,dev]'
	@$(TEST_VENV)/bin/python .ci/which_torch.py
	@touch $@

# The demo installs the package as a user would: as a wheel, without development tools.
$(DEMO_VENV)/ready: $(REQUIREMENTS) $(SOURCES) | python
	$(call make_venv,$(DEMO_VENV))
	$(DEMO_VENV)/bin/python -m pip install $(PIP_ARGS) -c constraints.txt '.[torch]'
	@$(DEMO_VENV)/bin/python .ci/which_torch.py
	@touch $@

define make_venv
@$(1)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(1) || { \
  echo "cannot make a virtual environment with $(PYTHON); on Debian and Ubuntu install python3-venv" >&2; exit 1; }
endef

python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "no interpreter $(PYTHON) found; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "Python 3.10 or newer is needed, $(PYTHON) is $$($(PYTHON) -V 2>&1); name another: make PYTHON=python3.12" >&2; exit 1; }
