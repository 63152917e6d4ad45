# `make` shows the targets. `make test` is the whole check: it needs Go, make
# and, to install redis-server, apt-get or a moment of yours.
SHELL = /bin/sh
GO ?= go
LINT = $(GO) tool -modfile=tools.mod golangci-lint
BUF = $(GO) tool -modfile=tools.mod buf

# The race detector needs a C compiler.
RACE := $(shell command -v $$($(GO) env CC | cut -d' ' -f1) >/dev/null 2>&1 && echo -race)
# For one package; the packages run side by side.
TIMEOUT ?= 8m
# How often test-chaos repeats.
COUNT ?= 10

# The packages whose tests start a Redis.
REDIS_PACKAGES = $$($(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | awk '/\/internal\/testredis/ { print $$1 }')

.PHONY: help
help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: all
all: fmt test ## Format, then check everything

.PHONY: test
test: redis tools modules ## Check everything: vet, all tests with the race detector, lint
	@test -n "$(RACE)" || echo "make: no C compiler, so the race detector stays OFF" >&2
	$(GO) vet ./...
	$(GO) test $(RACE) -shuffle=on -count=1 -timeout=$(TIMEOUT) ./...
	$(LINT) run --allow-parallel-runners
	@$(MAKE) --no-print-directory checkgenerate

.PHONY: test-real
test-real: redis ## Only the packages whose tests start a Redis
	$(GO) test $(RACE) -shuffle=on -count=1 -timeout=$(TIMEOUT) $(REDIS_PACKAGES)

.PHONY: test-chaos
test-chaos: redis ## Only the tests that kill processes, COUNT times
	$(GO) test $(RACE) -shuffle=on -count=$(COUNT) -timeout=30m -run 'Kill|Crash|Chaos' $(REDIS_PACKAGES)

.PHONY: test-kill
test-kill: redis ## Only the tests that kill the program and Redis, at full length
	UMBEL_TEST_FULL=1 $(GO) test $(RACE) -count=1 -timeout=$(TIMEOUT) -v ./test/kill ./test/chaos

# How many schedules check-histories plays.
SCHEDULES ?= 10000

.PHONY: check-histories
check-histories: ## Play SCHEDULES schedules of runs and faults, and check what history says
	UMBEL_CHECK_SCHEDULES=$(SCHEDULES) $(GO) test -count=1 -timeout=12h -v -run TestSchedules ./test/check

.PHONY: mutants
mutants: ## Break promises one by one, and see that the check of histories finds it
	@GO="$(GO)" ./test/check/mutants/run

# How long fuzz runs each target.
FUZZTIME ?= 30s

.PHONY: fuzz
fuzz: ## Fuzz each decoder for FUZZTIME
	@for dir in $$(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\)(.*/\1/p' $$dir/*_test.go); do \
			echo "$$dir $$target" && $(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$dir || exit 1; \
		done; \
	done

.PHONY: lint
lint: ## Run golangci-lint as tools.mod pins it
	$(LINT) run --allow-parallel-runners

.PHONY: generate
generate: ## Write the Go code of api/umbel/v1 anew
	$(BUF) generate

# released.binpb describes the protocol as it was last released: what it says, later versions must go on understanding.
.PHONY: checkgenerate
checkgenerate: ## Check the protocol: lint, nothing broken since the last release, generated code up to date
	$(BUF) lint
	$(BUF) breaking api --against api/released.binpb
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && $(BUF) generate -o "$$fresh" && \
		diff -r "$$fresh/api/gen" api/gen || { echo "make: api/gen is not what make generate writes" >&2; exit 1; }

.PHONY: fmt
fmt: ## Format the Go files
	$(LINT) fmt

.PHONY: bench
bench: redis ## Run the benchmarks; test/bench prints Umbel beside a bare queue
	$(GO) test -run '^$$' -bench . -benchmem -timeout=30m ./...

.PHONY: redis
redis: ## See to it that there is a redis-server, or say how to get one
	@./scripts/need-redis

.PHONY: tools
tools: ## See to it that there are curl and python3, or say how to get them
	@./scripts/need-tools

.PHONY: modules
modules:
	$(GO) mod download
