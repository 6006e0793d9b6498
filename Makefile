# Two commands do all the set-up: `make quickstart` and `make test`.

.DEFAULT_GOAL := help
.PHONY: help quickstart test crash-test lint relevance bench clean

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

quickstart: ## Build, get a model, index a sample and search it
	@bash scripts/quickstart.sh

test: ## Set up what the tests need, and run all of them
	@bash scripts/test.sh

crash-test: ## Kill, starve and race the program for ten minutes; see docs/TESTING.md
	@bash scripts/crash-test.sh

lint: ## Formatting, clippy and documentation, warnings denied
	@bash scripts/lint.sh

relevance: ## Score searches on judged sets of queries; see docs/benchmarks.md
	@bash scripts/bench.sh --bench relevance

bench: ## Measure; see docs/benchmarks.md
	@bash scripts/bench.sh

clean: ## Remove what the commands above made in the tree
	@rm -rf .quickstart target
