# Starling: every target says what it does in the comment behind it; `make` lists them.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# Debian packages that tests need, as COMMAND=PACKAGE. Go modules come by themselves. Services that packages start
# do not disturb: tests start their own, at ports of their own.
TEST_NEEDS := mpirun=openmpi-bin /usr/sbin/sshd=openssh-server /usr/share/zookeeper/bin/zkServer.sh=zookeeper ip=iproute2 \
	containerd=containerd /usr/sbin/runc=runc nsenter=util-linux busybox=busybox-static curl=curl python3=python3 \
	chromium=chromium redis-server=redis-server /usr/sbin/nginx=nginx-light pg_ctlcluster=postgresql \
	prometheus=prometheus prometheus-node-exporter=prometheus-node-exporter /lib/systemd/systemd=systemd
RACE_NEEDS := gcc=gcc

# Packages whose tests run real processes and engines, which are to be in time: one such package at a time. They wait more
# than they work, so that four of their tests run at once, also on fewer processors.
REAL := /(driver|e2e|journal)(/|$$)

SEEDS ?= 1-20000
# Seeds that were never played before, for each run of the suite: as many as take some seconds.
FRESH := $(shell first=$$(od -An -N4 -tu4 /dev/urandom); echo $$((first))-$$((first + 499)))
FUZZTIME ?= 20s
STORM ?= 10m
BENCH ?= .

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/starling
	.ci/build bin/starling

.PHONY: demo
demo: ## three peers, two jobs, one kill: watch the flock heal
	@.ci/install
	go run ./e2e/demo

.PHONY: test
test: static ## everything: static checks and the full suite
	@.ci/install $(TEST_NEEDS)
	@start=$$SECONDS; status=0; \
	go test -timeout 20m $$(go list ./... | grep -Ev '$(REAL)') || status=$$?; \
	go test -timeout 20m -p 1 -parallel 4 $$(go list ./... | grep -E '$(REAL)') || status=$$?; \
	if [ $$status != 0 ]; then \
		echo "make test: FAILED, exit status $$status, after $$((SECONDS - start)) s"; exit $$status; fi; \
	echo "make test: seeds $(FRESH), which nobody has played"; \
	go run ./cmd/starling sim --seeds $(FRESH) || { \
		echo "make test: FAILED, replay the seed that is named"; exit 1; }; \
	echo "make test: all passed in $$((SECONDS - start)) s"

.PHONY: check
check: static ## before each commit: static checks and the short suite
	go test -short -timeout 5m ./...

# static holds what needs no run: format, the requirements in go.mod, vet, that the tree builds for another system,
# staticcheck, and that the program reaches its functions. Programs that check the code are lines "tool" of go.mod: go.sum
# holds them as it holds the rest, nothing is to be installed, and go get raises them. Nobody imports this module, so their own
# requirements burden no one; none of them is in what make build writes.
.PHONY: static
static:
	@.ci/install
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "not formatted, run gofmt -w on:"; echo "$$unformatted"; exit 1; fi
	@go mod tidy -diff || { echo "go.mod or go.sum differs from what the code imports, as above: run go mod tidy"; exit 1; }
	go vet ./...
	GOOS=darwin go build ./...
	@echo "go tool staticcheck ./..."; go tool staticcheck ./... || { \
		echo "staticcheck: repair what it names, go tool staticcheck -explain CODE says why; where it is wrong for once, a comment"; \
		echo "before the line, //lint:ignore CODE REASON, exempts it, and fails when it is not needed any more"; exit 1; }
	.ci/dead

.PHONY: race
race: ## the short suite under the race detector
	@.ci/install $(RACE_NEEDS)
	CGO_ENABLED=1 go test -race -short -timeout 20m ./...

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (20s)
	@{ grep -rnoE '^func Fuzz[A-Za-z0-9_]+' --include='*_test.go' . || echo 'no fuzz targets yet' >&2; } | sort | while IFS=: read -r file _ target; do \
		echo "== $$file $${target#func }"; \
		go test -run '^$$' -fuzz "^$${target#func }\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
	done

.PHONY: sim
sim: ## simulated clusters, SEEDS (1-20000)
	go run ./cmd/starling sim --seeds $(SEEDS)

.PHONY: storm
storm: ## real machines in network namespaces and all that may befall them, for STORM (10m), of a seed in KILL_SEED if it is set
	@.ci/install $(TEST_NEEDS)
	STORM=$(STORM) go test ./e2e/kill -run '^TestStorm$$' -timeout 2h -v

.PHONY: bench
bench: ## all benchmarks, or those that match BENCH
	go test -run '^$$' -bench '$(BENCH)' -benchmem -timeout 30m ./...

.PHONY: virtual
virtual: ## try the drivers in a virtual Debian with control groups of version 2, as root: some ten minutes
	@.ci/install debootstrap=debootstrap qemu-system-x86_64=qemu-system-x86
	.ci/virtual

.PHONY: packages
packages: ## try the packages of the present commit in a fresh Debian, as root: install, upgrade, remove
	@.ci/install debootstrap=debootstrap
	STARLING_TRY_RELEASE=1 go test -timeout 30m ./e2e/release

.PHONY: release
release: ## what is released, for all systems, of the present commit: bin/release
	.ci/release bin/release

.PHONY: generate
generate: ## write generated code again
	go generate ./...
