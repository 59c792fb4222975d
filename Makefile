# Continuous integration runs `make verify` (.ci/run) on a clean machine with
# Go, git, make and a C compiler (for -race) and nothing else.
# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The steps print to one terminal and share two cores, so make runs them one after another.
.NOTPARALLEL:

# A go.work on a developer's machine must not change what is verified. The
# repository's own go.work joins the released modules.
export GOWORK := off
WORKSPACE := GOWORK=$(CURDIR)/go.work

GO ?= go
# `make lint` runs the analyzers of go vet.
TEST := $(GO) test -vet=off
# The modules of this repository have separate dependencies on purpose. These are
# the released ones, as go.work lists them.
RELEASED := . crd server cmd cmd/espalier-server
# deploy and controllers are missing here: they have targets of their own, since
# their dependencies take minutes to build.
OTHERS := conformance conformance/envtest/project examples tools tools/release tools/site tools/vale
PACKAGES := ./... ./crd/... ./server/... ./cmd/... ./cmd/espalier-server/...
BIN := $(CURDIR)/.bin
GOLANGCI_LINT := $(BIN)/golangci-lint
VALE := $(BIN)/vale
# Programs that tests and benchmarks of the server need, pinned in conformance/go.mod.
ETCD := $(BIN)/etcd
ETCDCTL := $(BIN)/etcdctl
ETCDUTL := $(BIN)/etcdutl
KUBECTL := $(BIN)/kubectl
UPSTREAM := $(BIN)/upstream
KUBE_APISERVER := $(BIN)/kube-apiserver
KUBE_CONTROLLER_MANAGER := $(BIN)/kube-controller-manager
KUBE_SCHEDULER := $(BIN)/kube-scheduler
E2E := $(BIN)/e2e
HELM := $(BIN)/helm
KINE := $(BIN)/kine
FUZZTIME ?= 10m
MINUTES ?= 10
URLS ?= 100000
# The folders with golden files, and the packages that have an -update flag.
TESTDATA_DIRS = $$(find . -name testdata -type d -not -path './.git/*' -not -path '*/testdata/*' | sort)
# Golden tests of conformance, a module of its own, run without -update in conformance-short.
GOLDEN_PACKAGES = $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | grep -v '^./conformance/' | xargs -r -n1 dirname | sort -u)

step = @printf '==> %s: %s\n' '$@' '$(1)'

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: verify
verify: fmt lint prose test race-short linear-coarse conformance-short golden ## Run everything that continuous integration runs

# Suites that take too long for each change.
.PHONY: nightly
nightly: race conformance planted linear urls attack flood scenarios upstream-suite controller-runtime kubernetes-conformance kinds offline charts controllers deploy-check envtest search-diff plan-truth conversion-rules migration soak explore advice hooks robustness mutants minutes site-check ## Run every suite that verify leaves out (hours)

.PHONY: build
build: ## Build the command line and the server as static binaries in .bin
	@mkdir -p $(BIN)
	@$(WORKSPACE) CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(BIN)/ ./cmd/espalier ./cmd/espalier-server

# VERSION=v1.2.3 names the release; the default is the output of git describe.
.PHONY: release
release: ## Build binaries for all platforms, packages, the image, checksums, SBOMs and provenance in .bin/release; RELEASEFLAGS='-platforms linux/amd64' for some
	$(call step,build what is published of a commit)
	@cd tools/release && $(GO) run . -root ../.. -version '$(VERSION)' $(RELEASEFLAGS)

.PHONY: release-check
release-check: ## Build the release twice, fail if a byte differs, install each part of it and run what is installed
	$(call step,check that two builds of a commit are identical)
	@cd tools/release && $(GO) run . -root ../.. -version '$(VERSION)' -twice $(RELEASEFLAGS)
	$(call step,install the release in each way that this machine can)
	@cd tools/release && ESPALIER_RELEASE=$(BIN)/release $(TEST) -count=1 -timeout 30m -v -run 'TestRelease' .

.PHONY: site
site: $(KUBECTL) ## Build the site of the documents in .bin/site (needs npm for the index of its search)
	$(call step,build the site)
	@mkdir -p $(BIN)/site-tools && cd tools/site && cp package.json package-lock.json .npmrc check.mjs $(BIN)/site-tools/
	@cd $(BIN)/site-tools && npm install --silent
	@cd tools/site && $(GO) run . -root ../.. -out $(BIN)/site -npm $(BIN)/site-tools

# Not part of verify: it needs Chromium.
.PHONY: site-check
site-check: site ## Check the links of the site, and its pages in Chromium: widths, light and dark, accessibility, search
	$(call step,check the site in a browser)
	@cd $(BIN)/site-tools && node check.mjs $(BIN)/site $(BIN)/site-pictures

.PHONY: pictures
pictures: ## draw the pictures of the documents, from docs/pictures/*.txt and docs/results.json
	@cd tools && $(GO) run ./pictures

.PHONY: fmt
fmt: ## Fail if a file is not gofmt'd
	$(call step,check the format of all Go files)
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

# Not part of verify: `make lint` runs the same analyzers, and on a clean machine both take
# minutes to read every dependency.
.PHONY: vet
vet: ## Run go vet in every module
	$(call step,run go vet in every module)
	@$(WORKSPACE) $(GO) vet $(PACKAGES)
	@for m in $(OTHERS); do (cd $$m && $(GO) vet ./...); done

.PHONY: tidy
tidy: ## Run go mod tidy in every released module
	@cd tools && $(GO) run ./modules tidy

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint at the version pinned in tools/go.mod
	$(call step,run golangci-lint in every module with code)
	@for m in $(RELEASED); do (cd $$m && $(WORKSPACE) $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...); done
	@for m in $(OTHERS); do (cd $$m && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...); done
	@cd tools && $(GO) run ./modules tidy -check

# Built from the module cache, so that its dependencies are checked against
# tools/go.sum, and rebuilt when the pin or the Go release changes.
$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	@printf '==> %s\n' 'lint: building the pinned golangci-lint (once per pin)'
	@mkdir -p $(BIN)
	@cd tools && $(GO) build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

# Vale reads the prose of Markdown pages and the comments of Go files. Test data
# and built files are skipped.
PROSE = find . \( -name .git -o -name .bin -o -name testdata -o -name robustness-out \) -prune -o \( -name '*.md' -o -name '*.go' \) -print0 | sort -z

.PHONY: prose
prose: $(VALE) ## Check the language of pages and Go comments with Vale and the rules in .vale; FILES='a.md b.go' for some
	$(call step,test that each rule finds the words that it forbids)
	@cd tools/vale && $(TEST) ./...
	$(call step,check pages and comments for forbidden words)
	@$(if $(FILES),printf '%s\0' $(FILES),$(PROSE)) | xargs -0 $(VALE) --no-global --config $(CURDIR)/.vale.ini

# As with golangci-lint. Vale needs a C compiler.
$(VALE): tools/vale/go.mod tools/vale/go.sum
	@printf '==> %s\n' 'prose: building the pinned Vale (once per pin)'
	@mkdir -p $(BIN)
	@cd tools/vale && $(GO) build -o $@ github.com/vale-cli/vale/v3/cmd/vale && touch $@

.PHONY: tools
tools: $(ETCD) $(ETCDCTL) $(ETCDUTL) $(KUBECTL) $(UPSTREAM) ## Build etcd, its tools, kubectl and upstream's server at the versions pinned in conformance/go.mod

# As with golangci-lint: built from the module cache, and again when a pin changes.
$(ETCD): PACKAGE := go.etcd.io/etcd/server/v3
$(ETCDCTL): PACKAGE := go.etcd.io/etcd/etcdctl/v3
$(ETCDUTL): PACKAGE := go.etcd.io/etcd/etcdutl/v3
$(KUBECTL): PACKAGE := ./cmd/kubectl
$(UPSTREAM): PACKAGE := k8s.io/apiextensions-apiserver
$(ETCD) $(ETCDCTL) $(ETCDUTL) $(KUBECTL) $(UPSTREAM): conformance/go.mod conformance/go.sum
	@printf '==> %s\n' 'tools: building the pinned $(@F) (once per pin)'
	@mkdir -p $(BIN)
	@cd conformance && $(GO) build -ldflags='$(LDFLAGS)' -o $@ $(PACKAGE) && touch $@

# What kubectl and kube-apiserver say for `version`: without it, v0.0.0-master. Tests of
# Kubernetes compare versions and skip or fail without a real one.
RELEASE = -X k8s.io/component-base/version.gitVersion=$(1) -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(1)))
$(KUBECTL): LDFLAGS = $(call RELEASE,v1$(patsubst v0%,%,$(shell cd conformance && GOWORK=off $(GO) list -m -f '{{.Version}}' k8s.io/kubectl)))
$(KUBE_APISERVER) $(KUBE_CONTROLLER_MANAGER) $(KUBE_SCHEDULER): LDFLAGS = $(call RELEASE,$(shell cd conformance/kubernetes && GOWORK=off $(GO) list -m -f '{{.Version}}' k8s.io/kubernetes))

# The programs of Kubernetes are not part of `make tools`: kube-apiserver takes eight
# minutes of CPU to build, and only comparisons such as `make attack` need it. The other two
# share most packages with it; `make controllers` needs them.
$(KUBE_APISERVER) $(KUBE_CONTROLLER_MANAGER) $(KUBE_SCHEDULER): conformance/kubernetes/go.mod conformance/kubernetes/go.sum
	@printf '==> %s\n' '$(@F): building the pinned $(@F) (once per pin; minutes)'
	@mkdir -p $(BIN)
	@cd conformance/kubernetes && $(GO) build -ldflags='$(LDFLAGS)' -o $@ k8s.io/kubernetes/cmd/$(@F) && touch $@

.PHONY: kube-apiserver
kube-apiserver: $(KUBE_APISERVER) ## Build kube-apiserver at the version pinned in conformance/kubernetes/go.mod (about eight minutes)

.PHONY: kube-controller-manager
kube-controller-manager: $(KUBE_CONTROLLER_MANAGER) $(KUBE_SCHEDULER) ## Build kube-controller-manager and kube-scheduler at the same version (minutes)

# The conformance specs of Kubernetes as one program. Like kube-apiserver it is built once
# per pin.
$(E2E): conformance/kubernetes/go.mod conformance/kubernetes/go.sum conformance/kubernetes/conformance_test.go
	@printf '==> %s\n' 'e2e: building the conformance specs of Kubernetes (once per pin; about fifteen minutes)'
	@mkdir -p $(BIN)
	@cd conformance/kubernetes && $(GO) test -c -vet=off -tags conformance -o $@ . && touch $@

.PHONY: e2e
e2e: $(E2E) ## Build the conformance specs of Kubernetes at the version pinned in conformance/kubernetes/go.mod (about fifteen minutes)

# The tests of ./server take longest: naming that package first lets the others run beside
# it. Most tests of servers wait half of the time, so that two processors do three packages.
# `make explore` runs the long tests of espaliertest.
.PHONY: test
test: $(ETCD) $(ETCDCTL) ## Run all tests of the released modules, of the tools and of the examples
	$(call step,run go test in the released modules)
	@$(WORKSPACE) $(TEST) -p 3 -timeout 30m ./server $$($(WORKSPACE) $(GO) list $(PACKAGES) | grep -v -x github.com/espalier-dev/espalier/server/espaliertest)
	@$(WORKSPACE) $(TEST) -short ./server/espaliertest
	@cd tools/release && $(TEST) -short .
	@cd tools && $(TEST) -short ./modules ./pictures ./mutants ./simulate
	$(call step,run the examples)
	@cd examples && $(TEST) ./...

# Packages whose tests start many servers: they take minutes each under the race detector,
# all others together seven, compilation included. `make race` runs them.
SERVERS := server server/apis/builtin server/apis/customresource server/bindings server/controllers/migration server/espaliertest server/storage/store server/tenants
RACED = $$($(WORKSPACE) $(GO) list ./internal/compile ./internal/plan ./server/... | grep -v -x $(foreach p,$(SERVERS),-e github.com/espalier-dev/espalier/$(p)))

.PHONY: race-short
race-short: $(ETCD) $(ETCDCTL) ## Run tests of concurrent code under the race detector, without those that start many servers
	$(call step,run tests of concurrent code under the race detector)
	@$(WORKSPACE) $(TEST) -race -short -p 3 -timeout 30m $(RACED)

.PHONY: race
race: $(ETCD) $(ETCDCTL) ## Run all tests of the released modules under the race detector (half an hour)
	$(call step,run all tests under the race detector)
	@$(WORKSPACE) $(TEST) -race -short -p 3 -timeout 60m ./server $(PACKAGES)

# The packages with tests of growth. They measure only with -growth: see internal/costtest.
GROWTH_PACKAGES = $$(grep -rl --include='*_test.go' 'costtest.Linear(' . | grep -v '^./conformance/' | xargs -n1 dirname | sort -u)

# On shared cores other jobs alone can make cost grow 1.3 times as fast as the input,
# so this step fails at four times; `make linear` fails at 1.3. One package at a time:
# they would share caches and memory.
.PHONY: linear-coarse
linear-coarse: ## Check that cost grows at most four times as fast as the input (on any machine)
	$(call step,measure hostile inputs of several sizes)
	@$(WORKSPACE) $(TEST) -p 1 -count=1 -run CostIsLinear $(GROWTH_PACKAGES) -growth 4

.PHONY: urls
urls: $(ETCD) ## Send 100,000 generated URLs and check that the server touches only what it authorized (about three minutes)
	$(call step,compare authorization and access for 100000 generated URLs)
	@$(WORKSPACE) $(TEST) -count=1 -v -run TestAuthorizedIsTouched -timeout 30m ./server -urls $(URLS)

.PHONY: linear
linear: ## Check that cost grows at most 1.3 times as fast as the input (needs an idle machine)
	$(call step,measure hostile inputs of several sizes)
	@$(WORKSPACE) $(TEST) -p 1 -count=1 -run CostIsLinear $(GROWTH_PACKAGES) -growth 1.3

.PHONY: conformance-short
conformance-short: tools ## Run the differential tests against upstream, short form (minutes)
	$(call step,compare Espalier with upstream on case tables and generated inputs (short form))
	@cd conformance && $(TEST) $$($(GO) list ./... | grep -v -e /scenarios -e /envtest -e /minutes) && $(TEST) -short -timeout 20m ./scenarios ./envtest && $(GO) run ./cmd/conform -short && $(GO) run ./cmd/attack -only espalier && $(GO) run ./cmd/robustness -short

.PHONY: conformance
conformance: ## Run the differential tests against upstream, long form
	$(call step,compare Espalier with upstream on generated inputs (long form))
	@cd conformance && $(GO) run ./cmd/conform

.PHONY: planted
planted: ## Plant bugs in the engine, drawn by a seed, and let the comparison with upstream find them; PLANTEDFLAGS='-seed 7 -count 3' for others
	$(call step,plant bugs in the engine and let the comparison find them)
	@cd conformance && $(GO) run ./cmd/planted $(PLANTEDFLAGS)

# Not part of nightly: it needs the module proxy, and downloads gigabytes the first time.
.PHONY: diff-pairs
diff-pairs: ## Compare the CRDs of consecutive releases of real projects with crd/diff and crdify; PAIRSFLAGS='-projects cert-manager -list' for some
	$(call step,compare CRDs of consecutive releases)
	@cd conformance && $(GO) run ./cmd/pairs $(PAIRSFLAGS)

.PHONY: plan-truth
plan-truth: tools ## Compare plans of generated changes of CRDs with what the server does afterwards: TRUTHFLAGS='-changes 500 -objects 200' (about an hour)
	$(call step,compare plans with what the server does)
	@cd conformance && $(GO) test ./impact -run TestPlanAgainstTruth -v -timeout 6h -args $(or $(TRUTHFLAGS),-changes 500 -objects 200)

.PHONY: conversion-rules
conversion-rules: ## Test 200 sets of conversion rules, real and made, with 10,000 objects each; CONVERSIONFLAGS='-sets 20 -objects 100' for fewer
	$(call step,test conversion rules with random objects and edits)
	@cd conformance && $(GO) run ./cmd/conversion-rules $(CONVERSIONFLAGS)

.PHONY: migration
migration: tools $(KUBE_APISERVER) $(KUBE_CONTROLLER_MANAGER) ## Migrate stored objects with our server and with kube-apiserver, and compare storedVersions with what is stored; MIGRATIONFLAGS='-on espalier' for one
	$(call step,migrate stored objects)
	@cd conformance && $(GO) run ./cmd/migration $(MIGRATIONFLAGS)

.PHONY: search-diff
search-diff: ## Search for breaking changes that crd/diff misses, for MINUTES (default 10)
	$(call step,search for breaking schema changes that crd/diff misses)
	@cd conformance && $(GO) run ./cmd/search-diff -minutes $(MINUTES)

.PHONY: golden
golden: ## Regenerate golden files and fail if one changes
	$(call step,check that golden files are up to date)
	@before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; \
	for d in $(TESTDATA_DIRS); do mkdir -p "$$before/$$d"; cp -R "$$d/." "$$before/$$d/"; done; \
	for p in $(GOLDEN_PACKAGES); do \
	  tests='Golden|Documents'; for f in "$$p"/testdata/Test*.txt; do [ ! -e "$$f" ] || tests="$$tests|^$$(basename "$$f" .txt)$$"; done; \
	  out=$$($(WORKSPACE) $(GO) test "$$p" -count=1 -run "$$tests" -update) || { echo "$$out"; exit 1; }; echo "$$out"; \
	  case "$$out" in *'no tests to run'*) echo "$$p has an -update flag and no test called Golden or Documents, or like a file in testdata"; exit 1;; esac; \
	done; \
	changed=0; \
	for d in $(TESTDATA_DIRS); do diff -ruN "$$before/$$d" "$$d" || changed=1; done; \
	if [ $$changed = 1 ]; then echo "golden files changed: read the difference above, then commit it or fix the code"; exit 1; fi

.PHONY: compare
compare: ## Give the same CRDs and objects to espalier, kubeconform, kubectl-validate and crdify; print what each notices, and time and memory
	$(call step,compare with other tools on the same inputs)
	@cd conformance && $(GO) run ./cmd/compare $(BENCHFLAGS)

.PHONY: bench-engine
bench-engine: ## Measure time and allocations of the engine and of upstream's
	$(call step,measure the engine and upstream on the same objects)
	@cd conformance && $(GO) run ./cmd/bench-engine

.PHONY: bench-cli
bench-cli: ## Measure time and memory of `espalier check` and of upstream's validation, over the corpus
	$(call step,measure espalier check and a minimal program around upstream)
	@cd conformance && $(GO) run ./cmd/bench-cli

.PHONY: bench-size
bench-size: ## Measure the sizes of both programs, and the memory of the smallest commands
	$(call step,build both programs as releases are and measure them)
	@cd conformance && $(GO) run ./cmd/bench-size $(BENCHFLAGS)

.PHONY: bench-lsp
bench-lsp: ## Measure the time from a key to diagnostics, and memory, of the language server with 300 CRDs; LSPFLAGS='-compare 2000 -edits 10m' also compares with espalier validate
	$(call step,type in a file of 200 KB in a workspace of 300 CRDs)
	@cd tools && $(GO) run ./benchlsp $(LSPFLAGS)

# Not part of verify: it needs Neovim.
.PHONY: editor
editor: ## Run a session with the language server in Neovim without a screen and compare it with the recorded one
	$(call step,run the language server in Neovim)
	@command -v nvim > /dev/null || { echo "nvim is missing: install Neovim"; exit 1; }
	@mkdir -p $(BIN) && $(WORKSPACE) $(GO) build -o $(BIN)/espalier ./cmd/espalier && sh editors/neovim/run.sh $(BIN)/espalier

# Not part of verify: it needs pre-commit.
.PHONY: hooks
hooks: ## Run the pre-commit hooks with pre-commit on a kubebuilder project, a Helm chart and a repository with docker-compose (minutes)
	$(call step,run pre-commit on ordinary repositories)
	@command -v pre-commit > /dev/null || { echo "pre-commit is missing: apt install pre-commit, or pipx install pre-commit"; exit 1; }
	@cd conformance && $(TEST) -count=1 -timeout 30m -v ./hooks -hooks

.PHONY: bench-server
bench-server: tools ## Measure rates, CPU and memory of the server, of upstream's and of bare etcd (about 15 minutes)
	$(call step,measure the server and upstream and bare etcd in turns on one etcd)
	@cd conformance && $(GO) run ./cmd/bench-server $(BENCHFLAGS)

.PHONY: bench-plane
bench-plane: tools ## Measure what RBAC, admission and API priority and fairness cost
	$(call step,measure the server with and without RBAC and admission and API priority and fairness)
	@cd conformance && $(GO) run ./cmd/bench-server -only espalier,plain $(BENCHFLAGS)

.PHONY: bench-crds
bench-crds: tools ## Measure what 10,000 CRDs cost, and how soon a new one is served and published; compare with upstream
	$(call step,install the corpus on the server and on upstream)
	@cd conformance && $(GO) run ./cmd/bench-crds $(BENCHFLAGS)

.PHONY: bench-start
bench-start: tools ## Measure the start of espaliertest, espalier dev and upstream's in-process test server
	$(call step,measure server starts in new processes in turns)
	@cd conformance && $(GO) run ./cmd/bench-start $(BENCHFLAGS)

.PHONY: minutes
minutes: tools ## Do what docs/guides/minutes.md says and measure each path: from the archives to a first finding, control plane, test and embed
	$(call step,follow the guide and measure)
	@cd conformance && $(TEST) -count=1 -v ./minutes $(BENCHFLAGS)

.PHONY: bench-kinds
bench-kinds: tools $(KUBE_APISERVER) ## Measure memory, start and writes of the server with all built-in kinds, and of kube-apiserver; fail above 40 MB
	$(call step,measure what the built-in kinds cost beside kube-apiserver)
	@cd conformance && $(GO) run ./cmd/bench-kinds $(BENCHFLAGS)

.PHONY: bench-conversion
bench-conversion: tools ## Measure conversion by rules: one object, a list of 10,000 in another version, and the same by a webhook
	$(call step,measure conversion by rules and by a webhook in turns)
	@cd conformance && $(GO) run ./cmd/bench-conversion $(BENCHFLAGS)

.PHONY: bench-objects
bench-objects: tools ## Measure operations with 1,000, 100,000 and 1,000,000 objects (about ten minutes)
	$(call step,measure create and get and list with more and more objects)
	@cd conformance && $(GO) run ./cmd/bench-objects $(BENCHFLAGS)

.PHONY: bench-plan
bench-plan: tools ## Measure a plan over 1,000,000 stored objects (about ten minutes)
	$(call step,measure plans of changes of CRDs)
	@cd conformance && $(GO) run ./cmd/bench-plan $(BENCHFLAGS)

.PHONY: bench-tenants
bench-tenants: tools ## Measure what 10,000 tenants cost; BENCHFLAGS='-tenants 1000 -used 100' for fewer
	$(call step,measure tenants)
	@cd conformance && $(GO) run ./cmd/bench-tenants $(BENCHFLAGS)

.PHONY: bench-neighbours
bench-neighbours: tools ## Measure what a tenant notices of another one that floods the server, and of one that is full (about five minutes)
	$(call step,measure what tenants notice of others)
	@cd conformance && $(GO) run ./cmd/bench-neighbours $(BENCHFLAGS)

.PHONY: bench-scale
bench-scale: tools ## Measure writes with several replicas and etcds, tenants in use, and who notices that an etcd is gone (about five minutes)
	$(call step,measure the parts of large sites)
	@cd conformance && $(GO) run ./cmd/bench-scale $(BENCHFLAGS)

.PHONY: bench-moves
bench-moves: tools ## Move tenants between etcds under load and with faults, and check what clients get (about half an hour)
	$(call step,move tenants under load)
	@cd conformance && $(GO) run ./cmd/bench-moves $(BENCHFLAGS)

.PHONY: simulate
simulate: ## Calculate what sites of 1, 10 and 100 etcds carry, from what bench-scale and bench-tenants have recorded in docs/results.json
	$(call step,simulate large sites)
	@cd tools && $(GO) run ./simulate -root ..

.PHONY: upstream-suite
upstream-suite: tools ## Run upstream's integration tests against our server; SUITEFLAGS='-tenant suite' for a tenant of it
	$(call step,run the integration tests of upstream against our server)
	@cd conformance && $(GO) run ./cmd/upstream-suite $(SUITEFLAGS)

# kube-apiserver, unless -only names other servers.
reference = $(if $(filter -only,$1),$(if $(findstring kube-apiserver,$1),$(KUBE_APISERVER)),$(KUBE_APISERVER))

# Not part of verify: the suites take ten minutes, and kube-apiserver eight to build. One spec
# races with its own informer, and with the import changed a few count goroutines.
RUNTIMEFLAGS ?= -least 1085 -least-import 1079
.PHONY: controller-runtime
controller-runtime: tools $(call reference,$(RUNTIMEFLAGS)) ## Run controller-runtime's suites with kube-apiserver and with our server; RUNTIMEFLAGS='-packages client' for some, '-only espalier,espaliertest -tenant suite' for tenants
	$(call step,run the suites of controller-runtime with kube-apiserver and with our server)
	@cd conformance && $(GO) run ./cmd/controller-runtime $(RUNTIMEFLAGS)

# Not part of verify: it compiles and runs tests for each of 1,500 mutants, which takes hours.
.PHONY: mutants
mutants: tools ## Change the source in small ways and count what tests notice; MUTANTFLAGS='-packages crd/diff -mutants 100' for some
	$(call step,change the source in small ways and run the nearest tests)
	@cd tools && $(GO) run ./mutants $(MUTANTFLAGS)

# Not part of verify: the specs take minutes, and they and kube-apiserver 25 to build.
CONFORMANCEFLAGS ?= -least 132
.PHONY: kubernetes-conformance
kubernetes-conformance: tools $(call reference,$(CONFORMANCEFLAGS)) $(E2E) ## Run Kubernetes' conformance specs with kube-apiserver and with our server; CONFORMANCEFLAGS='-focus sig-auth' for some, '-only espalier -tenant suite' for a tenant
	$(call step,run the conformance specs of Kubernetes with kube-apiserver and with our server)
	@cd conformance && $(GO) run ./cmd/kubernetes-conformance $(CONFORMANCEFLAGS)

# Not part of verify: the default of 100 objects a kind takes minutes, and kube-apiserver eight to build.
.PHONY: kinds
kinds: tools $(KUBE_APISERVER) ## Send generated objects of built-in kinds to kube-apiserver and to our server and list differences; KINDSFLAGS='-kinds pods -objects 1000' for some
	$(call step,compare built-in kinds with kube-apiserver)
	@cd conformance && $(GO) run ./cmd/kinds -least-equal 99.9 -least-fields 99 -most-refused 1 -most-accepted 0.15 $(KINDSFLAGS)
	$(call step,compare the objects in the source of Kubernetes)
	@cd conformance && $(GO) run ./cmd/kinds -fixtures kubernetes -objects 2000 -least-equal 99.5 -least-fields 99 -most-refused 0 -most-accepted 0.2

.PHONY: offline
offline: tools ## Give generated objects of built-in kinds to espalier validate, to our server and to kubeconform; OFFLINEFLAGS='-kinds pods -objects 1000' for some
	$(call step,compare espalier validate with the server)
	@cd conformance && $(GO) run ./cmd/offline -kubeconform $(OFFLINEFLAGS)

.PHONY: scenarios
scenarios: tools ## Run kubectl, informers and a controller against the server, built with the race detector
	$(call step,run kubectl and other clients against the server under the race detector)
	@cd conformance && $(GO) test -count=1 -timeout 40m ./scenarios

.PHONY: flood
flood: tools ## Flood the server as one user: memory, other users' latency and shutdown must stay within bounds; FLOODFLAGS='-run lists' for some
	$(call step,flood the server with lists and OpenAPI documents and applies and webhooks)
	@cd conformance && $(GO) run ./cmd/flood $(FLOODFLAGS)

.PHONY: attack
attack: tools $(KUBE_APISERVER) ## Attack our server and kube-apiserver and print what each refused; ATTACKFLAGS='-run C1' for some
	$(call step,run the same attacks on our server and on kube-apiserver)
	@cd conformance && $(GO) run ./cmd/attack $(ATTACKFLAGS)

# Not part of verify: SQLite takes minutes to compile, and PostgreSQL has to be installed.
$(KINE): conformance/kine/go.mod conformance/kine/go.sum
	@printf '==> %s\n' 'kine: building the pinned kine (once per pin; minutes)'
	@mkdir -p $(BIN)
	@cd conformance/kine && GOWORK=off $(GO) build -o $@ github.com/k3s-io/kine && touch $@

.PHONY: kine
kine: tools $(KINE) ## Run the server on kine with SQLite and PostgreSQL, and on etcd: writes, watches, scenarios; KINEFLAGS='-engines sqlite' for one
	$(call step,run the server on kine)
	@cd conformance && $(GO) run ./cmd/kine $(KINEFLAGS)

# Not part of verify: Helm takes five minutes of CPU to build.
$(HELM): conformance/helm/go.mod conformance/helm/go.sum
	@printf '==> %s\n' 'charts: building the pinned Helm (once per pin; minutes)'
	@mkdir -p $(BIN)
	@cd conformance/helm && $(GO) build -o $@ helm.sh/helm/v3/cmd/helm && touch $@

.PHONY: charts
charts: $(HELM) $(GOLANGCI_LINT) ## Compare two versions of charts with espalier diff and the Helm pinned in conformance/helm/go.mod
	$(call step,compare charts that Helm renders)
	@cd conformance/helm && $(GO) vet ./... && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./... && $(GO) test -count=1 ./...

# Not part of verify: building the controllers takes half an hour.
.PHONY: controllers
controllers: tools $(KUBE_CONTROLLER_MANAGER) $(KUBE_SCHEDULER) $(GOLANGCI_LINT) ## Run released controllers (kube-controller-manager, cert-manager and others) against the server; CONTROLLERS=TestKro for one
	$(call step,run released controllers against the server)
	@cd controllers && $(GO) vet ./... && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./... && $(GO) test -count=1 -timeout 60m -run '$(CONTROLLERS)' .

# Not part of verify: the tests need Helm and Prometheus, which take minutes to build.
.PHONY: deploy-check
deploy-check: tools $(GOLANGCI_LINT) ## Test the chart, manifests, unit, image, alerts and dashboard in deploy/ against the server
	$(call step,test the chart and manifests and unit and image and alerts and dashboard)
	@cd deploy && $(GO) vet ./... && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./... && $(GO) test -timeout 20m ./...

.PHONY: envtest
envtest: ## Run a project that uses envtest on our binaries and with espaliertest, and the testing guide
	$(call step,run a kubebuilder project and the testing guide)
	@cd conformance && $(TEST) -count=1 -v ./envtest

.PHONY: soak
soak: tools ## Run mixed load and schema changes for MINUTES; fail if memory grows or a watcher misses an event
	$(call step,run mixed load for $(MINUTES) minutes)
	@cd conformance && $(GO) run ./cmd/soak -minutes $(MINUTES)

# Not part of verify, which applies a few hundred.
.PHONY: advice
advice: ## Apply 10,000 fixes of generated CEL rules, and sets of bounds, and compare what is accepted (about ten minutes)
	$(call step,apply generated fixes and compare results)
	@$(WORKSPACE) $(TEST) -count=1 -timeout 60m -v -run TestAdvice ./crd/lint -advice 10000

.PHONY: explore
explore: ## Run 100 fault schedules against the guide's controller, and one of them 50 times (about two minutes)
	$(call step,run fault schedules and repeat one)
	@$(WORKSPACE) ESPALIER_REPEAT=50 $(TEST) -count=1 -timeout 30m ./server/espaliertest

.PHONY: robustness
robustness: tools ## Run replicas under faults for MINUTES (default 60), half on one etcd member and half on three; ROBUSTNESSFLAGS='-members 3 -faults cut' for some
	$(call step,run replicas and etcd under faults)
	@cd conformance && $(GO) run ./cmd/robustness -minutes $(if $(filter file,$(origin MINUTES)),60,$(MINUTES)) $(ROBUSTNESSFLAGS)

# The first run takes long to build: fuzzing instruments every dependency.
# `go test -list` prints the names of a package's targets, then "ok <package>".
.PHONY: fuzz
fuzz: ## Run each native fuzz target for FUZZTIME (default 10m), one after another
	$(call step,run each fuzz target for $(FUZZTIME))
	@for m in $(RELEASED) $(OTHERS); do ( cd $$m; \
	  case " $(RELEASED) " in *" $$m "*) export $(WORKSPACE);; esac; \
	  $(GO) test -list '^Fuzz' ./... \
	    | awk '/^Fuzz/ { name[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, name[i]; n = 0 } /^\?/ { n = 0 }' \
	    | while read -r pkg target; do \
	        printf '==> fuzz: %s %s\n' "$$pkg" "$$target"; \
	        $(GO) test "$$pkg" -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' < /dev/null; \
	      done ); \
	done

.PHONY: clean
clean: ## Remove built tools
	@rm -rf $(BIN)
