# `make select` and `make test` need nothing but make and a Python from 3.11 to 3.13.

VENV := .venv
BIN := $(VENV)/bin
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$p && break; done)
INSTALLED := $(VENV)/installed

# One thread for each process: on busy cores two are much slower than one.
export OMP_NUM_THREADS = 1

# Where Python keeps no compiled files, each of the many processes that the tests start compiles torch and AllenNLP again.
unexport PYTHONDONTWRITEBYTECODE

# Behind a company's proxy, only the system's certificates know the company's own. uv has renamed its variable; a pip before
# 24.2 is given them unless it has some.
export UV_SYSTEM_CERTS = 1
export UV_NATIVE_TLS = 1
CERTS := $(firstword $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem /etc/ssl/cert.pem))

PYTEST := -m pytest -q --numprocesses auto --maxprocesses 4 --dist loadfile
LIGHT := $(VENV)-light

.PHONY: install select restaurants test test-light check docs format requirements clean

install: $(INSTALLED)  ## install everything into .venv

select: $(INSTALLED)  ## choose among three taggers on the bundled WikiGold
	$(BIN)/allennlp fiesta-select training_configs/wikigold/*.jsonnet -s runs/wikigold --metric f1-measure-overall \
		--split-ratios 0.64,0.16,0.2 --workers 2 --force

restaurants: $(INSTALLED)  ## choose among eight models of the FIESTA paper; training_configs/tdsa/README.md says what it needs
	$(BIN)/fiesta select $(filter-out %_200.jsonnet,$(wildcard training_configs/tdsa/*.jsonnet)) \
		-s runs/restaurants --split-ratios 0.64,0.16,0.2 --workers 2 $(if $(PRESET),--preset $(PRESET)) $(if $(wildcard runs/restaurants/store.sqlite),--recover)

test: $(INSTALLED)  ## run the tests
	$(BIN)/python $(PYTEST)

test-light: $(LIGHT)/installed  ## run the tests that need neither torch nor AllenNLP, in an install without them
	$(LIGHT)/bin/python $(PYTEST)

$(LIGHT)/installed: setup.py
	$(PYTHON) -m venv $(LIGHT)
	$(LIGHT)/bin/pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

check: $(INSTALLED)  ## format, lint, types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(INSTALLED)  ## build the site into build/docs; a warning is an error
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(INSTALLED): requirements.txt setup.py
	@"$(PYTHON)" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { echo "No Python from 3.11 to 3.13: '$(PYTHON)'. Install one, or give it: make PYTHON=/path/to/python"; exit 1; }
	@echo "Installing into $(VENV): 6 GB of packages, one to two minutes."
	$(PYTHON) -m venv $(VENV)
	@set -e; pip="$(BIN)/pip install --quiet --disable-pip-version-check"; \
	if [ -z "$$PIP_CERT" ] && ! $(BIN)/pip config get global.cert >/dev/null 2>&1; then \
		export PIP_CERT="$${SSL_CERT_FILE:-$(CERTS)}"; fi; \
	index="$${PIP_INDEX_URL:-$$($(BIN)/pip config get global.index-url 2>/dev/null || true)}"; \
	if $$pip uv 2>/dev/null; then \
		$(BIN)/uv pip install --quiet --python $(BIN)/python $${index:+--default-index "$$index"} --no-deps -r requirements.txt; \
	else \
		echo "Cannot install uv, so pip installs the packages. This takes a few minutes."; \
		$$pip --no-deps -r requirements.txt; fi; \
	$$pip --no-deps -e .
	touch $@

requirements:  ## resolve setup.py, and AllenNLP without its pins, into requirements.txt; needs uv
	sed -n 's/^ALLENNLP = "\(.*\)"$$/allennlp==\1/p' fiesta_allennlp/version.py | uv pip compile setup.py - --extra allennlp --extra dev --extra docs \
		--override overrides.txt --universal --python-version 3.11 --no-annotate --no-header --upgrade --output-file requirements.txt

clean:
	rm -rf $(VENV) $(LIGHT) runs build *.egg-info
