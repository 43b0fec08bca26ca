# Each step of CI is one target. `make help` lists them.

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
STAMP    = -X main.version=$(VERSION) -X main.revision=$(shell git rev-parse --short HEAD 2>/dev/null)

# What the program may weigh, in bytes, and how long, or how often, each fuzz target runs.
MAX_BINARY := 16000000
DURATION   ?= 10s
# Which benchmarks: make bench BENCH=Publish
BENCH      ?= .

LINT := bin/golangci-lint

.DEFAULT_GOAL := help
.PHONY: help build run test race lint fmt fuzz bench bench-peers bench-test guard clean image chart chart-update admission e2e

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/sidecar, static and small
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w $(STAMP)' -o bin/sidecar ./cmd/sidecar
	@bytes=$$(wc -c <bin/sidecar); echo "bin/sidecar: $$bytes bytes"; test $$bytes -lt $(MAX_BINARY) || \
		{ echo "cannot ship that: the most is $(MAX_BINARY)" >&2; exit 1; }

run: build ## run a broker with demo topics, and print what to try; Ctrl-C ends it
	@hack/run.sh bin/sidecar

test: ## run all tests; installs the languages of the example clients when root on Debian
	@hack/languages.sh
	$(GO) test ./...

race: ## run all tests under the race detector
	@hack/languages.sh
	$(GO) test -race ./...

lint: $(LINT) ## check style and the arrows between packages
	$(LINT) run ./...
	cd test/e2e && ../../$(LINT) run --build-tags e2e ./...
	cd hack/bench && ../../$(LINT) run ./...

fmt: $(LINT) ## format the code
	$(LINT) fmt ./...

fuzz: ## run every fuzz target for DURATION (10s; 10000x counts inputs)
	@hack/fuzz.sh $(DURATION)

bench: ## run the benchmarks beside the code; BENCH=regexp chooses
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./pkg/...

image: ## make the image podmq:VERSION; needs Docker, pulls nothing
	@hack/image.sh

# The tests below are a module of their own, test/e2e, whose dependencies are not
# the program's. They find helm, kubectl, etcd and kube-apiserver in PODMQ_E2E_BIN
# or in PATH.
chart: ## test the charts without a cluster; needs helm
	@hack/prometheus.sh
	cd test/e2e && $(GO) vet -tags e2e ./... && $(GO) test -count=1 ./chart

chart-update: ## write golden files, manifests and READMEs of the charts anew
	cd test/e2e && $(GO) test ./chart -count=1 -update

admission: ## test the policies; needs helm, etcd and kube-apiserver
	cd test/e2e && $(GO) test -count=1 ./admission

e2e: ## test in a kind cluster; needs Docker, kubectl and helm
	@hack/prometheus.sh
	@hack/e2e.sh

bench-peers: build ## measure beside Redis Streams, beanstalkd and NATS JetStream; ARGS='-rounds=1 -only=one' and others
	@hack/bench/run.sh $(ARGS)

bench-test: ## test what bench-peers measures with; installs the peers when root on Debian
	@hack/bench/peers.sh
	cd hack/bench && $(GO) vet ./... && $(GO) test -count=1 ./...

guard: ## hold allocations and system calls a message to what they are
	$(GO) test -count=1 -run '^TestCost' -v ./pkg/transport ./pkg/core/memory ./pkg/core/stream

clean: ## remove what was built
	rm -rf bin

# Built once for each version: it takes a few minutes the first time.
$(LINT): hack/tools/go.mod
	$(GO) build -modfile=hack/tools/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@
