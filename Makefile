# `make verify` is what continuous integration runs (.ci/run), on a clean
# machine with nothing but Go, git, make and a C compiler (for -race).
# `make help` lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# The steps print to one terminal and share two cores: one after another.
.NOTPARALLEL:

# A go.work on a developer's machine must not change what is verified.
export GOWORK := off

GO ?= go
# vet is a step of its own.
TEST := $(GO) test -vet=off
# Modules of this repository: each has its own dependencies on purpose.
MODULES := . conformance conformance/envtest/project tools
# Those that are not: deploy and the ones below controllers have targets of their
# own, since what they need takes minutes to build.
# The modules whose code we lint.
CODE_MODULES := . conformance conformance/envtest/project tools
BIN := $(CURDIR)/.bin
GOLANGCI_LINT := $(BIN)/golangci-lint
# What tests and benchmarks of the server are run with: pinned in conformance/go.mod.
ETCD := $(BIN)/etcd
ETCDCTL := $(BIN)/etcdctl
ETCDUTL := $(BIN)/etcdutl
KUBECTL := $(BIN)/kubectl
UPSTREAM := $(BIN)/upstream
KUBE_APISERVER := $(BIN)/kube-apiserver
FUZZTIME ?= 10m
MINUTES ?= 10
URLS ?= 100000
# Where golden files live, and which packages know how to rewrite them.
TESTDATA_DIRS = $$(find . -name testdata -type d -not -path './.git/*' -not -path '*/testdata/*' | sort)
GOLDEN_PACKAGES = $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -r -n1 dirname | sort -u)

step = @printf '==> %s: %s\n' '$@' '$(1)'

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: verify
verify: fmt vet lint test linear-coarse conformance-short golden ## everything continuous integration runs

# What takes too long for each change.
.PHONY: nightly
nightly: conformance linear urls attack flood scenarios upstream-suite controllers deploy-check envtest search-diff soak explore robustness ## every suite that verify leaves out (hours)

.PHONY: build
build: ## the command line, as one static binary, into .bin
	@mkdir -p $(BIN)
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o $(BIN)/espalier ./cmd/espalier

# VERSION=v1.2.3 names it; without, it is what git describe says.
.PHONY: release
release: ## static binaries for all platforms, with checksums and SBOMs, into .bin/release
	$(call step,binaries and bills of materials and checksums)
	@cd tools && $(GO) run ./release -root .. -version '$(VERSION)' $(RELEASEFLAGS)

.PHONY: release-check
release-check: ## build the release twice; fail if a byte differs
	$(call step,the same commit gives the same bytes)
	@cd tools && $(GO) run ./release -root .. -version '$(VERSION)' -twice $(RELEASEFLAGS)

.PHONY: fmt
fmt: ## fail if a file is not gofmt'd
	$(call step,gofmt finds nothing to change in any module)
	@unformatted=$$(gofmt -l .); \
	if [ -n "$$unformatted" ]; then echo "run gofmt -w on:"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet: ## go vet in every module
	$(call step,go vet in every module)
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...); done

.PHONY: lint
lint: $(GOLANGCI_LINT) ## golangci-lint at the version pinned in tools/go.mod
	$(call step,golangci-lint in every module with code)
	@for m in $(CODE_MODULES); do (cd $$m && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./...); done

# Built from the module cache, so that its dependencies are checked against
# tools/go.sum, and rebuilt when the pin or the Go release changes.
$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	@printf '==> %s\n' 'lint: building the pinned golangci-lint (once per pin)'
	@mkdir -p $(BIN)
	@cd tools && $(GO) build -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: tools
tools: $(ETCD) $(ETCDCTL) $(ETCDUTL) $(KUBECTL) $(UPSTREAM) ## etcd and its tools, kubectl and upstream's server, at the versions pinned in conformance/go.mod

# Packages with tests that -short leaves out: they are about cost and size, do
# everything in one goroutine, and would take ten times as long under the race
# detector without telling more.
LONG_PACKAGES = $$(grep -rl --include='*_test.go' 'testing.Short()' . | grep -v -e '^./conformance/' -e '^./tools/' -e '^./deploy/' -e '^./controllers/' -e '^./espaliertest/' | xargs -n1 dirname | sort -u | grep -v '^\.$$')

# As with golangci-lint: from the module cache, and anew when a pin changes.
$(ETCD): PACKAGE := go.etcd.io/etcd/server/v3
$(ETCDCTL): PACKAGE := go.etcd.io/etcd/etcdctl/v3
$(ETCDUTL): PACKAGE := go.etcd.io/etcd/etcdutl/v3
$(KUBECTL): PACKAGE := ./cmd/kubectl
$(UPSTREAM): PACKAGE := k8s.io/apiextensions-apiserver
$(ETCD) $(ETCDCTL) $(ETCDUTL) $(KUBECTL) $(UPSTREAM): conformance/go.mod conformance/go.sum
	@printf '==> %s\n' 'tools: building the pinned $(@F) (once per pin)'
	@mkdir -p $(BIN)
	@cd conformance && $(GO) build -o $@ $(PACKAGE) && touch $@

# A module of its own, and not among the tools: it takes eight minutes of CPU to build, and only comparisons from outside need it.
$(KUBE_APISERVER): conformance/kubernetes/go.mod conformance/kubernetes/go.sum
	@printf '==> %s\n' 'kube-apiserver: building the pinned kube-apiserver (once per pin; about eight minutes)'
	@mkdir -p $(BIN)
	@cd conformance/kubernetes && $(GO) build -o $@ k8s.io/kubernetes/cmd/kube-apiserver && touch $@

.PHONY: kube-apiserver
kube-apiserver: $(KUBE_APISERVER) ## kube-apiserver at the version pinned in conformance/kubernetes/go.mod (about eight minutes)

# Those of server take longest, and wait most of the time: the others run beside them.
.PHONY: test
test: $(ETCD) $(ETCDCTL) ## all tests of the library, under the race detector where goroutines meet
	$(call step,go test -race in the root module)
	@$(TEST) -race -short -timeout 30m ./server ./...
	$(call step,what one goroutine does alone without the race detector)
	@$(TEST) $(LONG_PACKAGES)
	@cd tools && $(TEST) -short ./release

# Without the race detector: these tests measure time and memory. On shared
# cores 1.3 is at times the neighbours' doing, so that only four times as fast as
# the input fails a build; `make linear` is exact.
.PHONY: linear-coarse
linear-coarse:
	$(call step,cost of hostile inputs of 10 and 100 times the size)
	@$(GO) test -count=1 -run CostIsLinear . -growth 4

.PHONY: urls
urls: $(ETCD) ## 100,000 generated URLs: what is authorized is what is touched (about three minutes)
	$(call step,what 100000 generated URLs are authorized for and what they touch)
	@$(TEST) -count=1 -v -run TestAuthorizedIsTouched -timeout 30m ./server -urls $(URLS)

.PHONY: linear
linear: ## cost grows at most 1.3 times as fast as the input (wants a quiet machine)
	$(call step,cost of hostile inputs of 10 and 100 times the size)
	@$(GO) test -count=1 -run CostIsLinear .

.PHONY: conformance-short
conformance-short: tools ## differential tests against upstream, short form (minutes)
	$(call step,case tables and the same inputs through Espalier and upstream (short form))
	@cd conformance && $(TEST) $$($(GO) list ./... | grep -v -e /scenarios -e /envtest) && $(TEST) -short -timeout 20m ./scenarios ./envtest && $(GO) run ./cmd/conform -short && $(GO) run ./cmd/attack -only espalier && $(GO) run ./cmd/robustness -short

.PHONY: conformance
conformance: ## differential tests against upstream, long form
	$(call step,the same inputs through Espalier and upstream (long form))
	@cd conformance && $(GO) run ./cmd/conform

.PHONY: search-diff
search-diff: ## look for breaking changes that crd/diff misses, for MINUTES (default 10)
	$(call step,random changes of schemas and the objects that they break)
	@cd conformance && $(GO) run ./cmd/search-diff -minutes $(MINUTES)

.PHONY: golden
golden: ## regenerate golden files; fail if one changes
	$(call step,regenerating golden files changes nothing)
	@before=$$(mktemp -d); trap 'rm -rf "$$before"' EXIT; \
	for d in $(TESTDATA_DIRS); do mkdir -p "$$before/$$d"; cp -R "$$d/." "$$before/$$d/"; done; \
	for p in $(GOLDEN_PACKAGES); do \
	  out=$$($(GO) test "$$p" -count=1 -run 'Golden|Documents' -update) || { echo "$$out"; exit 1; }; echo "$$out"; \
	  case "$$out" in *'no tests to run'*) echo "$$p has an -update flag and no test called Golden or Documents"; exit 1;; esac; \
	done; \
	changed=0; \
	for d in $(TESTDATA_DIRS); do diff -ruN "$$before/$$d" "$$d" || changed=1; done; \
	if [ $$changed = 1 ]; then echo "golden files changed: read the difference above, then commit it or mend the code"; exit 1; fi

.PHONY: bench-engine
bench-engine: ## time and allocations of the engine beside upstream's
	$(call step,the engine beside upstream on the same objects)
	@cd conformance && $(GO) run ./cmd/bench-engine

.PHONY: bench-cli
bench-cli: ## time and memory of `espalier check` beside upstream's validation, over the corpus
	$(call step,espalier check beside a minimal program around upstream)
	@cd conformance && $(GO) run ./cmd/bench-cli

.PHONY: bench-server
bench-server: tools ## rates, CPU and memory of the server beside upstream's and bare etcd (about a quarter of an hour)
	$(call step,the server of upstream and ours and bare etcd in turns on one etcd)
	@cd conformance && $(GO) run ./cmd/bench-server $(BENCHFLAGS)

.PHONY: bench-plane
bench-plane: tools ## what roles, admission, priority and fairness take of the server's rates
	$(call step,our server with and without roles and admission and priority and fairness in turns on one etcd)
	@cd conformance && $(GO) run ./cmd/bench-server -only espalier,plain $(BENCHFLAGS)

.PHONY: bench-crds
bench-crds: tools ## what 10,000 CRDs cost the server, and how soon a new one is served and shown, beside upstream's
	$(call step,the corpus as CRDs on the server of upstream and on ours)
	@cd conformance && $(GO) run ./cmd/bench-crds $(BENCHFLAGS)

.PHONY: bench-start
bench-start: tools ## how soon a server can be used: espaliertest, espalier dev, and upstream's in-process test server
	$(call step,starts of servers in new processes in turns)
	@cd conformance && $(GO) run ./cmd/bench-start $(BENCHFLAGS)

.PHONY: bench-objects
bench-objects: tools ## what an operation costs with 1,000, 100,000 and 1,000,000 objects (about ten minutes)
	$(call step,create and get and a page of a list with more and more objects)
	@cd conformance && $(GO) run ./cmd/bench-objects $(BENCHFLAGS)

.PHONY: upstream-suite
upstream-suite: tools ## upstream's own integration tests against our server
	$(call step,the integration tests of upstream with our server in place of its own)
	@cd conformance && $(GO) run ./cmd/upstream-suite

.PHONY: scenarios
scenarios: tools ## kubectl, informers and a controller against the server, built with the race detector
	$(call step,kubectl and other clients against the server under the race detector)
	@cd conformance && $(GO) test -count=1 -timeout 40m ./scenarios

.PHONY: flood
flood: tools ## wear servers down as one user can: memory, other users' latency and the end on SIGTERM stay within bounds; FLOODFLAGS='-run lists' for some
	$(call step,floods of lists and documents and applies and webhooks)
	@cd conformance && $(GO) run ./cmd/flood $(FLOODFLAGS)

.PHONY: attack
attack: tools $(KUBE_APISERVER) ## attacks on our server and on kube-apiserver, and a table of what each refused; ATTACKFLAGS='-run C1' for some
	$(call step,the same attacks on our server and on kube-apiserver)
	@cd conformance && $(GO) run ./cmd/attack $(ATTACKFLAGS)

# Not part of verify: building them from nothing takes a quarter of an hour.
.PHONY: controllers
controllers: tools $(GOLANGCI_LINT) ## released controllers (cert-manager, cluster-api and others) against the server; CONTROLLERS=TestKro for one
	$(call step,released controllers run against the server)
	@cd controllers && $(GO) vet ./... && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./... && $(GO) test -count=1 -timeout 60m -run '$(CONTROLLERS)' .

# Not part of verify: Helm and Prometheus, which check it, take minutes to build.
.PHONY: deploy-check
deploy-check: tools $(GOLANGCI_LINT) ## what deploy/ ships, against the server as it is
	$(call step,chart and manifests and unit and image and rules and dashboard against a real server)
	@cd deploy && $(GO) vet ./... && $(GOLANGCI_LINT) run --config $(CURDIR)/.golangci.yml ./... && $(GO) test -timeout 20m ./...

.PHONY: envtest
envtest: ## a project that uses envtest, on our programs and with our package; the guide to testing
	$(call step,a project in the layout of kubebuilder and the guide to testing)
	@cd conformance && $(TEST) -count=1 -v ./envtest

.PHONY: soak
soak: tools ## mixed load and changes of schemas for MINUTES; fails if memory grows or a watcher misses an event
	$(call step,mixed load for $(MINUTES) minutes)
	@cd conformance && $(GO) run ./cmd/soak -minutes $(MINUTES)

.PHONY: explore
explore: ## 100 schedules of faults for the guide's controller, and 50 repetitions of one (about two minutes)
	$(call step,schedules of faults and their repetition)
	@$(TEST) -count=1 -timeout 30m ./espaliertest

.PHONY: robustness
robustness: tools ## replicas under faults for MINUTES (default 60), half on one member of etcd and half on three; ROBUSTNESSFLAGS='-members 3 -faults cut' for some
	$(call step,replicas and etcd under faults)
	@cd conformance && $(GO) run ./cmd/robustness -minutes $(if $(filter file,$(origin MINUTES)),60,$(MINUTES)) $(ROBUSTNESSFLAGS)

# The first run takes long to build: fuzzing instruments every dependency.
# `go test -list` prints the names of a package's targets, then "ok <package>".
.PHONY: fuzz
fuzz: ## each native fuzz target for FUZZTIME (default 10m), one after another
	$(call step,each fuzz target for $(FUZZTIME))
	@for m in $(CODE_MODULES); do ( cd $$m; \
	  $(GO) test -list '^Fuzz' ./... \
	    | awk '/^Fuzz/ { name[n++] = $$1 } /^ok/ { for (i = 0; i < n; i++) print $$2, name[i]; n = 0 } /^\?/ { n = 0 }' \
	    | while read -r pkg target; do \
	        printf '==> fuzz: %s %s\n' "$$pkg" "$$target"; \
	        $(GO) test "$$pkg" -run '^$$' -fuzz "^$$target\$$" -fuzztime '$(FUZZTIME)' < /dev/null; \
	      done ); \
	done

.PHONY: clean
clean: ## remove built tools
	@rm -rf $(BIN)
