# Every target with its one line: make help.
SHELL := /usr/bin/env bash -o pipefail
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
# Where kubectl of the local cluster, its kubeconfig and the built binaries are.
BIN = bin
# Built and then run, not "go run": that would swallow signals and exit codes.
LOCAL = mkdir -p $(BIN) && $(GO) build -o $(BIN)/local ./hack/local && exec $(BIN)/local
LINT = $(GO) tool -modfile=hack/tools/lint/go.mod
# How often, and under which race detector, "make test" runs: -race, -count and
# the like go here.
TESTFLAGS ?= -race

##@ Try it

.PHONY: demo
demo: ## Show the main job on a real control plane, then take it all down (KEEP=1 leaves it running)
	@$(LOCAL) demo

.PHONY: run
run: ## Run both processes here in the foreground (ENABLE_WEBHOOKS=false: the controller alone)
	@$(LOCAL) run

.PHONY: cluster-up
cluster-up: ## Start a local control plane with simulated nodes; kubeconfig at bin/kubeconfig
	@$(LOCAL) up

.PHONY: cluster-down
cluster-down: ## Stop the local control plane and leave nothing running
	@$(LOCAL) down

.PHONY: install
install: ## Apply the CRDs to the cluster of the current kubeconfig
	@kubectl apply -k config/crd

.PHONY: uninstall
uninstall: ## Delete the CRDs, and with them every object of the five kinds
	@kubectl delete --ignore-not-found -k config/crd

##@ Check it

.PHONY: test
test: ## Run every test that needs no container engine, against a real kube-apiserver
	@assets=$$($(LOCAL) binaries) && KUBEBUILDER_ASSETS=$$assets $(GO) test $(TESTFLAGS) ./...

.PHONY: verify
verify: ## Regenerate and lint; fails if a file had to change
	@./hack/verify.sh

.PHONY: lint
lint: ## Run the linters
	@$(LINT) golangci-lint run ./...

.PHONY: rest
rest: ## Watch 1000 objects of each kind at rest for 10 minutes; REST_OBJECTS and REST_FOR change that
	@assets=$$($(LOCAL) binaries) && KUBEBUILDER_ASSETS=$$assets REST_OBJECTS=$${REST_OBJECTS:-1000} REST_FOR=$${REST_FOR:-10m} \
	  $(GO) test ./controller -timeout 4h -count 1 -ginkgo.v -ginkgo.focus 'silent at rest$${KIND:+.*: $$KIND}'

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (30s)
	@./hack/fuzz.sh

.PHONY: bench
bench: ## Run the Go benchmarks, readable by benchstat (COUNT=10)
	@$(GO) test -run '^$$' -bench . -benchmem -count $${COUNT:-10} ./cron/... ./webhook/... ./controller/...

##@ Change it

.PHONY: generate
generate: ## Write deepcopy, CRDs, RBAC, webhook manifests and clients
	@./hack/generate.sh

.PHONY: build
build: ## Build both processes into bin/
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/webhook ./webhook
	@CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/controller ./controller

.PHONY: clean
clean: ## Remove what was built here; the cached Kubernetes binaries stay
	@rm -rf $(BIN) dist

.PHONY: help
help: ## List every target
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z.-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
