# Sluice. `make help` lists what can be asked for; CONTRIBUTING.md says when to use which.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := help

GO ?= go
# How long one fuzz target runs (make fuzz).
T ?= 10s
# How many times the soak kills.
KILLS ?= 200
# After how many records the soak's daemon writes a snapshot, and how long it stays down now and then; 0: not at all.
SNAPSHOT ?= 120
AWAY ?= 12s
# Whether storms of memory blow in the soak, in a control group that takes root to make: 1, or 0.
STORMS ?= 1
# 1: what the soak's subjobs leave goes to a store, too.
STORE ?= 0
# How many strikes hit a cluster (make cluster), the seed that draws them (empty: a new one) and of which kinds they are (KINDS="power cut,data old";
# empty: of all).
STRIKES ?= 30
SEED ?=
KINDS ?=
# Where published traces lie (make evaluation); without them it runs on generated work.
DATA ?= $(wildcard ../shared/data)
# Which real programs are run (make programs PROGRAMS='LAMMPS|Optuna'); empty: all.
PROGRAMS ?=
# How growth is measured (make scale): -quick, -only sold,step, -write.
SCALE ?=
# Build tags of sluice besides nvml, such as s3: stores in buckets (make build TAGS=s3).
TAGS ?=
# 0: make kube leaves a real kubelet out, which takes root, and namespaces of its own.
KUBELET ?= 1
# Which packages race works on.
PKGS ?= ./...

# The tools that are not Go's own, pinned. They are built into .tmp/bin, so nothing outside the clone is touched.
TOOLS := $(CURDIR)/.tmp/bin
GOLANGCI_VERSION := v2.15.0
GOLANGCI := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
# The server that stores of kind s3 are tested against. It is a program of tests alone, and no module of ours.
VERSITYGW_VERSION := v1.8.0
VERSITYGW := $(TOOLS)/versitygw-$(VERSITYGW_VERSION)

# The Go tool would note the commit by itself, but not where GOFLAGS forbids it; VERSION is the tag a person knows it by.
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
BUILD := $(GO) build -trimpath -ldflags "-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)"

.PHONY: help build demo test test-tags check format vet lint structure race fuzz bench baseline evaluation evaluation-full laminar leftover forecast forecast-page forecast-page-test airlock incentives scale peers fabric machines pilots replay limits versitygw etcd kube kube-soak kube-bench kube-assets kubelet cluster slurm programs upgrade soak kills planted mutants vmtest gpu gpu-rehearsal generate definitions chart image golden hooks clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' Makefile

# With a C compiler sluice can talk to NVIDIA's driver (NVML); without one, or with CGO_ENABLED=0, it has simulated slices
# alone and says so. The driver's header marks old calls as deprecated, which is not our news.
CGO_ENABLED ?= 1
WITH_NVML :=
ifneq ($(and $(filter-out 0,$(CGO_ENABLED)),$(shell command -v $(firstword $(CC)) || command -v gcc)),)
WITH_NVML := CGO_ENABLED=1 CGO_CFLAGS="-O2 -g -Wno-deprecated-declarations"
NVML := $(WITH_NVML) $(BUILD) -tags "nvml $(TAGS)"
TEST_NVML := $(WITH_NVML) $(GO) test -tags nvml ./internal/edge/inventory/nvml
EVERY := s3 etcd kubernetes figures machine nvml
else
NVML := CGO_ENABLED=0 $(BUILD) -tags "$(TAGS)"
TEST_NVML := true
EVERY := s3 etcd kubernetes figures machine
endif
# The packages with files behind a tag. What a tag hides passes what everything passes.
TAGGED = $(shell git grep -lE '^//go:build .*(s3|etcd|kubernetes|nvml)' -- '*.go' ':!tools' | xargs -n1 dirname | sort -u | sed 's|^|./|')

build: ## build bin/sluice and bin/sluice-shim
	@mkdir -p bin
	$(NVML) -o bin/ ./cmd/sluice
	CGO_ENABLED=0 $(BUILD) -tags "$(TAGS)" -o bin/ ./cmd/sluice-shim

demo: build ## the same work cut to fit and in rigid blocks on simulated slices, and memory storms, with pictures (about 2.5 minutes, more on a busy machine)
	@mkdir -p .demo && $(GO) build -o .demo/figures ./examples/demo
	@examples/demo/demo.sh
	@printf '\nA memory storm in the simulator, survived by Airlock, and what the kernel alone makes of it (some 10 seconds):\n\n'
	@bin/sluice sim compare airlock-storm -m airlock,kernel --metric highValueLost,wrongOrderKills,workLost,timeOverLine,suspended,recovered,readdressed --report .demo/storm.html
	@printf '\nIts timelines as a page: .demo/storm.html\n'

test: build ## every test; needs no network, no GPU and no root
	$(GO) test -timeout 20m ./...
	$(TEST_NVML)

check: format vet lint structure test test-tags ## what a commit must pass, behind all build tags too: format, vet, lint, structure, tests

test-tags: ## the tests behind the build tags kubernetes, s3 and etcd that need no server
	SLUICE_KUBE=none $(GO) test -tags "s3 etcd kubernetes" $(filter ./internal/%,$(TAGGED))

format: ## fail if a file is not gofmt'd, and name it
	@bad="$$(git ls-files -z --cached --others --exclude-standard -- '*.go' | xargs -0 -r ls -d 2>/dev/null | xargs -r gofmt -l)"; \
	if [ -n "$$bad" ]; then printf 'not formatted (run gofmt -w on them):\n%s\n' "$$bad"; exit 1; fi

vet: ## go vet for other systems: nodes are Linux, the client is not, and a forecast runs in a browser too. Here lint does it
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...
	GOOS=js GOARCH=wasm CGO_ENABLED=0 $(GO) vet ./internal/lab/cli/web

lint: $(GOLANGCI) ## golangci-lint with .golangci.yml, without build tags and with all
	$(GOLANGCI) run ./...
	$(WITH_NVML) $(GOLANGCI) run --build-tags "$(EVERY)" $(TAGGED)

structure: ## only the structure rules (internal/archtest)
	$(GO) test ./internal/archtest

race: build ## the tests under the race detector (needs a C compiler)
	CGO_ENABLED=1 $(GO) test -race $(PKGS)

fuzz: ## every fuzz target for T each (make fuzz T=1m)
	@tools/fuzz.sh $(T)

bench: build ## every benchmark, and a live daemon beside xargs, parallel and Slurm; says how to compare (under 10 minutes)
	@GO="$(GO)" tools/bench.sh

baseline: build ## the same, and the results become bench/baseline
	@GO="$(GO)" tools/bench.sh baseline

evaluation: laminar ## run every study with 5 seeds and rewrite docs/evaluation.md and docs/laminar.md (make evaluation DATA=../traces; DATA= for generated work)
	$(GO) run ./bench/evaluation -data "$(DATA)" -seeds 1-5

laminar: ## run Laminar's flow beside its peers on lean nodes and rewrite docs/laminar.md (make laminar DATA=../traces; about 5 minutes on two cores)
	$(GO) run ./bench/laminar -data "$(DATA)"

evaluation-full: ## the same with 20 seeds, which are those of the page as it is committed (about an hour on two cores)
	$(GO) run ./bench/evaluation -data "$(DATA)" -seeds 1-20

leftover: ## fill the gaps of a host scheduler and rewrite docs/leftover.md (make leftover DATA=../traces; about 5 minutes on two cores)
	$(GO) run ./bench/leftover -data "$(DATA)"

forecast: ## forecast weeks of published logs, and rewrite docs/forecast.md (make forecast DATA=../traces; about a minute on two cores)
	$(GO) run ./bench/forecast -data "$(DATA)"

forecast-page: ## build dist/forecast: `sluice forecast` as one page that runs in a browser and sends nothing (about a minute the first time)
	@mkdir -p .tmp
	GOOS=js GOARCH=wasm CGO_ENABLED=0 $(BUILD) -o .tmp/forecast.wasm ./internal/lab/cli/web
	$(GO) run ./internal/lab/cli/web -program .tmp/forecast.wasm -glue "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" -version "$(VERSION)" -out dist/forecast

forecast-page-test: build forecast-page ## hold that page in a real Chromium against the command (skipped without one, unless SLUICE_BROWSER=require; some two minutes)
	cd tools/browser && CGO_ENABLED=0 GOWORK=off SLUICE_DATA="$(if $(DATA),$(abspath $(DATA)))" $(GO) test -count=1 -timeout 20m -v ./...

airlock: ## let memory storms blow under Airlock and under what others have, and rewrite docs/airlock.md (about 8 minutes on two cores)
	$(GO) run ./bench/airlock

incentives: ## play the market with owners who lie and rewrite docs/incentives.md (about 5 minutes on two cores; go run ./bench/incentives -h for more seeds)
	$(GO) run ./bench/incentives

scale: ## what a thousand jobs cost beside a million, and whether that is within what it has to be (at most 15 minutes on two cores; SCALE=-quick for two)
	$(GO) run ./bench/scale $(SCALE)

peers: ## the same asks placed by ours and by other schedulers, into docs/benchmarks.md (a module of its own, with their dependencies; about 2 minutes)
	cd bench/peers && GOWORK=off GOFLAGS="-mod=mod -buildvcs=false" $(GO) build -o $(CURDIR)/.tmp/peers .
	.tmp/peers -write docs/benchmarks.md

fabric: ## messages between machines beside NATS, into docs/benchmarks.md (a module of its own, with NATS; about 3 minutes)
	cd bench/fabric && GOWORK=off GOFLAGS="-mod=mod -buildvcs=false" $(GO) build -o $(CURDIR)/.tmp/fabric . && \
	$(CURDIR)/.tmp/fabric -write $(CURDIR)/docs/benchmarks.md

machines: build ## a head and machines that joined it: no-op jobs beside Slurm, award to start, bytes, 200 machines, and what a job costs beside a unit of one, into docs/benchmarks.md (about 9 minutes)
	$(GO) run ./bench/machines -bin bin -write docs/benchmarks.md

pilots: build ## no-op jobs on pilots of a real Slurm beside the same as batch jobs, and what of a gap before a reservation becomes committed work, into docs/benchmarks.md (needs Slurm, as make slurm does; about 25 minutes)
	$(GO) run ./bench/pilots -bin bin -write docs/benchmarks.md

replay: build ## a stretch of a trace on real Slurms, without fillers and with pilots, into docs/benchmarks.md: what of the leftover is kept, and what the hosts' jobs lose (needs Slurm, as make slurm does; make replay DATA=../traces; about 25 minutes)
	$(GO) run ./bench/pilots -bin bin -only replay -data "$(DATA)" -write docs/benchmarks.md

limits: ## pilots in a log's gaps, with ends by users' limits and by what was learned of these, into docs/benchmarks.md (make limits DATA=../traces; about half a minute on two cores)
	$(GO) run ./bench/limits -data "$(DATA)" -write docs/benchmarks.md

versitygw: $(VERSITYGW) ## build the S3 server that stores of kind s3 are tested against (a minute; without it these tests are skipped)

etcd: ## journals in etcd against real members that are killed, paused and full (two minutes, and one the first time, to build etcd)
	@SLUICE_KUBE_PARTS=etcd tools/kube/assets.sh build
	SLUICE_ETCD=require SLUICE_KUBE_ASSETS="$$(tools/kube/assets.sh where)" $(GO) test -tags etcd -count=1 ./internal/edge/journal/etcd ./internal/edge/journal/all
	SLUICE_ETCD=require SLUICE_KUBE_ASSETS="$$(tools/kube/assets.sh where)" $(MAKE) --no-print-directory kills KILLS=40 AWAY=2s STORMS=0 JOURNAL=etcd

kube: kube-assets versitygw chart ## the tests on real parts of Kubernetes: etcd, API server, scheduler, controllers, machines of kwok, Kueue; then make kubelet, but with KUBELET=0 (about 10 minutes, and 6 for the kubelet, besides what kube-assets takes)
	cd tools/image && CGO_ENABLED=0 GOWORK=off $(GO) test .
	@GO="$(GO)" TAGS="$(TAGS)" tools/kube/test.sh
	@if [ "$(KUBELET)" = 0 ]; then echo "kube: no real kubelet, as KUBELET=0 says"; else $(MAKE) --no-print-directory kubelet; fi

kubelet: kube-assets versitygw ## all of it on a real kubelet with containerd, in namespaces of their own: takes root, and fails where it can't be had unless SLUICE_MACHINE=optional (about 6 minutes besides kube-assets)
	@GO="$(GO)" tools/kube/machine.sh

kube-soak: kube-assets versitygw ## an operator on a real control plane while all around it fails at random, and an oracle that reads nothing of its (make kube-soak KILLS=300; about a second for each, and a minute)
	SLUICE_KUBE=require SLUICE_KUBE_ASSETS="$$(tools/kube/assets.sh where)" SLUICE_KUBE_KILLS=$(KILLS) $(GO) test -tags kubernetes -count=1 -timeout 0 -v -run TestSoak ./test/kube/soak

kube-bench: kube-assets ## how long the hosts' Pods wait beside what fills their gaps, how much of these is used, and what a subjob costs, and pilots beside queue workers, on a real control plane, into docs/kubernetes.md (about 90 minutes on two cores)
	SLUICE_KUBE=require SLUICE_KUBE_ASSETS="$$(tools/kube/assets.sh where)" SLUICE_KUBE_PAGE=$(CURDIR)/docs/kubernetes.md SLUICE_DATA="$(abspath $(DATA))" $(GO) test -tags "kubernetes figures" -count=1 -timeout 120m -v -run 'TestFigures|TestReplayFigures|TestRates|TestScaleFigures' ./test/kube/measure
	SLUICE_KUBE=require SLUICE_KUBE_ASSETS="$$(tools/kube/assets.sh where)" SLUICE_KUBE_PAGE=$(CURDIR)/docs/kubernetes.md SLUICE_KUBE_RATES=60 $(GO) test -tags "kubernetes figures" -count=1 -timeout 60m -v -run 'TestPilotRates|TestWorkKept' ./test/kube/pilots

kube-assets: ## build these parts from the module proxy into a cache outside the clone, what is missing of them (about 12 minutes the first time, 7.5 GB with Go's caches)
	@GO="$(GO)" tools/kube/assets.sh build

cluster: ## a head and nine machines in namespaces, struck at random, and a checker that reads outputs and witnesses (make cluster STRIKES=300 SEED=1): takes root, and fails where it can't be had unless SLUICE_CLUSTER=optional (about 5 minutes)
	SLUICE_CLUSTER=$${SLUICE_CLUSTER:-require} SLUICE_CLUSTER_STRIKES=$(STRIKES) SLUICE_CLUSTER_SEED=$(SEED) SLUICE_CLUSTER_KINDS="$(KINDS)" $(GO) test -count=1 -timeout 0 -v -run TestCluster ./test/cluster

slurm: STRIKES = 12
slurm: ## pilots on a real Slurm of its own (Debian's packages, as any user): the provider, then the whole system, struck at random, and a checker that reads outputs, witnesses and squeue (make slurm STRIKES=200 SEED=1); fails where there is no Slurm unless SLUICE_SLURM=optional (about 12 minutes)
	SLUICE_SLURM=$${SLUICE_SLURM:-require} SLUICE_SLURM_STRIKES=$(STRIKES) SLUICE_SLURM_SEED=$(SEED) SLUICE_SLURM_KINDS="$(KINDS)" $(GO) test -count=1 -timeout 0 -v ./test/slurm

programs: build ## the programs of `sluice init --like`, real ones, in one window and cut and struck at random, and the same must come out (Debian's packages; one that is missing is skipped, and fails with SLUICE_PROGRAMS=require; make programs PROGRAMS='LAMMPS|Optuna' runs these; one or two minutes each)
	SLUICE_PROGRAMS=$${SLUICE_PROGRAMS:-optional} SLUICE_PROGRAMS_BIN=$(CURDIR)/bin $(GO) test -count=1 -timeout 60m -v $(if $(PROGRAMS),-run '^Test($(PROGRAMS))') ./test/programs

upgrade: ## a cluster whose machine is of the last build that spoke the version of links before, made from the repository's history, and fails where that is not there unless SLUICE_UPGRADE=optional (about 3 minutes)
	SLUICE_UPGRADE=$${SLUICE_UPGRADE:-require} $(GO) test -count=1 -v -run TestTheBuildBefore ./test/e2e

soak: kills planted ## the kill soak (make soak KILLS=200), then the same with each planted bug in: the oracle must see it

kills: ## only the kill soak (make kills KILLS=200 SNAPSHOT=120 AWAY=12s STORMS=0 STORE=1 JOURNAL=etcd; storms of memory blow where the soak is root)
	SLUICE_SOAK_KILLS=$(KILLS) SLUICE_SOAK_SNAPSHOT=$(SNAPSHOT) SLUICE_SOAK_AWAY=$(AWAY) SLUICE_SOAK_STORMS=$(STORMS) SLUICE_SOAK_STORE=$(STORE) $(GO) test -count=1 -timeout 0 -v $(if $(JOURNAL),-tags $(JOURNAL)) -run TestSoak ./test/soak

planted: ## only the planted bugs (about 6 minutes)
	SLUICE_SOAK_PLANTED=40 $(GO) test -count=1 -timeout 0 -v -run TestPlanted ./test/soak

mutants: ## with each bug planted that the soak does not see, a test of its package must fail (about a minute)
	SLUICE_MUTANTS=1 $(GO) test -count=1 -v -run TestMutants ./test/mutants

vmtest: ## the supervisor on a kernel that holds memory, in an emulated machine (needs qemu; about a minute)
	@GO="$(GO)" tools/vmtest.sh

gpu: build ## build dist/gpu, the trial of Sluice on a machine with an NVIDIA GPU, and run it where it stands, into docs/gpu.md (at most 9 minutes); without a GPU it says so and fails, unless SLUICE_GPU=optional
	@rm -rf dist/gpu .tmp/gpu && mkdir -p dist/gpu/programs
	CGO_ENABLED=0 $(BUILD) -o dist/gpu/run ./bench/gpu
	gzip -9nc bin/sluice > dist/gpu/sluice.gz
	gzip -9nc bin/sluice-shim > dist/gpu/sluice-shim.gz
	cp bench/gpu/programs/*.py sdk/python/sluice.py dist/gpu/programs/
	dist/gpu/run -check dist/gpu
	@code=0; dist/gpu/run -out .tmp/gpu || code=$$?; \
	if [ $$code = 3 ] && [ "$${SLUICE_GPU:-require}" = optional ]; then exit 0; fi; \
	if [ -e .tmp/gpu/results.json ]; then dist/gpu/run -page docs/gpu.md -results .tmp/gpu/results.json; fi; \
	exit $$code

gpu-rehearsal: ## all trials of make gpu with a pretended driver, on a machine without a GPU: no figure is of one (needs a C compiler and python3; about 3 minutes)
	SLUICE_GPU_REHEARSAL=all $(GO) test -count=1 -v -run '^TestARehearsal$$' ./bench/gpu

generate: definitions ## regenerate the API's code from its .proto, and Kubernetes' definitions of our custom resources
	api/generate.sh

IMAGE ?= sluice:dev
image: ## build bin/sluice-image.tar, a container image of the operator and of what it puts into Pods, without a daemon (IMAGE=NAME:TAG)
	@mkdir -p .tmp/image bin
	CGO_ENABLED=0 $(BUILD) -tags "s3 kubernetes" -o .tmp/image/ ./cmd/sluice ./cmd/sluice-shim
	cd tools/image && GOWORK=off $(GO) test . && GOWORK=off $(GO) run . -o $(CURDIR)/bin/sluice-image.tar -name $(IMAGE) $(CURDIR)/.tmp/image/sluice $(CURDIR)/.tmp/image/sluice-shim

chart: ## lint and render the Helm chart with Helm's own library (a module of its own; some three minutes the first time)
	cd tools/helm && CGO_ENABLED=0 GOWORK=off $(GO) test ./...

definitions: ## only the custom resources' definitions in the chart (needs no protoc)
	$(GO) test -count=1 -run TestDefinitions ./internal/edge/config -update

golden: ## rewrite the golden files of tests that have them, then show what changed
	@tools/golden.sh
	git status --short -- '*/testdata/*'

hooks: ## have git check the subject of each commit that you make here
	git config core.hooksPath .githooks

clean: ## remove what make built
	rm -rf bin .tmp .demo dist

$(GOLANGCI):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) GOFLAGS=-mod=mod $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/golangci-lint $@

$(VERSITYGW):
	@mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) GOFLAGS=-mod=mod $(GO) install github.com/versity/versitygw/cmd/versitygw@$(VERSITYGW_VERSION)
	@mv $(TOOLS)/versitygw $@
