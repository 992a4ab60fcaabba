# Every target with its one line: make help.
SHELL := /usr/bin/env bash -o pipefail
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
# Where kubectl of the local cluster, its kubeconfig and the built binaries are.
BIN = bin
# Built and then run, not "go run": that would swallow signals and exit codes.
# Its name is not LOCAL, which a user sets for "make run".
LOCALLY = mkdir -p $(BIN) && $(GO) build -o $(BIN)/local ./hack/local && exec $(BIN)/local
LINT = $(GO) tool -modfile=hack/tools/lint/go.mod
# The one place that says which version this is.
VERSION := $(shell cat version/VERSION)
DOCKER ?= docker
# What the images are built from: GOLANG_IMAGE and BASE_IMAGE.
include hack/base-images.mk
# What comes before the images' names, such as registry.example.com/team/.
REGISTRY ?=
# The platforms of a release, and the folder that it is written into.
PLATFORMS ?= linux/amd64 linux/arm64
DIST ?= dist
export DOCKER_BUILDKIT = 1
export E2E_CLUSTER E2E_NODE_IMAGE E2E_CERT_MANAGER E2E_NGINX_IMAGE E2E_NGINX_OTHER_IMAGE E2E_BUSYBOX_IMAGE E2E_KEEP
# How often, and under which race detector, "make test" runs: -race, -count and
# the like go here.
TESTFLAGS ?= -race -timeout 25m

# Reproducible: the revision is the commit's, and so is the time of creation.
DOCKER_BUILD_ARGS = --build-arg VERSION=$(VERSION) \
  --build-arg GOLANG_IMAGE=$(GOLANG_IMAGE) --build-arg BASE_IMAGE=$(BASE_IMAGE) \
  --build-arg REVISION=$$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct)
# The operator's own namespace, and those, separated by commas, that it is limited to; none is
# the whole cluster.
NAMESPACE ?= modelbox-system
NAMESPACES ?=
MANIFESTS = ./hack/manifests.sh $(1) "$(NAMESPACE)" "$(NAMESPACES)"
INSTALL = $(call MANIFESTS,config) | sed 's|image: modelbox-|image: $(REGISTRY)modelbox-|'

##@ Try it

.PHONY: demo
demo: ## Show the main job on a real control plane, then take it all down (KEEP=1 leaves it running)
	@$(LOCALLY) demo

.PHONY: run
run: ## Run both processes here, for the current cluster or a local one (ENABLE_WEBHOOKS=false: the controller alone; LOCAL=1, CONTEXT=name: docs/run.md)
	@$(LOCALLY) run

.PHONY: cluster-up
cluster-up: ## Start a local control plane with simulated nodes; kubeconfig at bin/kubeconfig
	@$(LOCALLY) up

.PHONY: cluster-down
cluster-down: ## Stop the local control plane and leave nothing running
	@$(LOCALLY) down

##@ Deploy it

.PHONY: docker-build
docker-build: ## Build both images for this machine's platform (REGISTRY=registry.example.com/team/)
	@for process in webhook controller; do \
	  echo "building $(REGISTRY)modelbox-$$process:$(VERSION)"; \
	  $(DOCKER) build --quiet -f Dockerfile.$$process -t $(REGISTRY)modelbox-$$process:$(VERSION) $(DOCKER_BUILD_ARGS) . ; \
	done

.PHONY: docker-push
docker-push: ## Build both images for amd64 and arm64 and push them to REGISTRY (needs docker buildx)
	@test -n "$(REGISTRY)" || { echo "docker-push: say where to: make docker-push REGISTRY=registry.example.com/team/" >&2; exit 1; }
	@for process in webhook controller; do \
	  $(DOCKER) buildx build --push --platform linux/amd64,linux/arm64 -f Dockerfile.$$process \
	    -t $(REGISTRY)modelbox-$$process:$(VERSION) $(DOCKER_BUILD_ARGS) . ; \
	done

.PHONY: release
release: ## Write images (OCI layout), SBOMs, install.yaml and checksums into dist/, signed with COSIGN_KEY (docs/install.md); needs docker
	@VERSION=$(VERSION) REGISTRY=$(REGISTRY) PLATFORMS="$(PLATFORMS)" DOCKER="$(DOCKER)" DOCKER_BUILD_ARGS="$(DOCKER_BUILD_ARGS)" ./hack/release.sh $(DIST)

.PHONY: release-again
release-again: ## Write the release once more, from nothing, and compare it with the one in dist/; takes minutes, needs docker
	@$(MAKE) --no-print-directory release COSIGN_KEY= DIST=bin/release-again DOCKER_BUILD_ARGS="$(DOCKER_BUILD_ARGS) --no-cache"
	@cmp $(DIST)/SHA256SUMS bin/release-again/SHA256SUMS && echo "release: the same files"

.PHONY: base-images
base-images: ## Write the digests that the tags of the base images have now into hack/base-images.mk
	@./hack/base-images.sh

.PHONY: install
install: ## Apply the CRDs to the cluster of the current kubeconfig
	@kubectl apply -k config/crd

.PHONY: uninstall
uninstall: ## Delete the CRDs, and with them every object of the five kinds and all that these own
	@kubectl delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: ## Apply the whole install to the current cluster, which needs cert-manager (NAMESPACE=ops NAMESPACES=a,b: docs/install.md)
	@$(INSTALL) | kubectl apply -f -

.PHONY: undeploy
undeploy: ## Delete the operator and its namespace; CRDs, objects and what these own stay (NAMESPACE, NAMESPACES as for deploy)
	@$(call MANIFESTS,config/operator) | kubectl delete --ignore-not-found -f -

.PHONY: install.yaml
install.yaml: ## Write the whole install into dist/install.yaml (REGISTRY=registry.example.com/team/)
	@mkdir -p dist && $(INSTALL) >dist/install.yaml && echo "wrote dist/install.yaml"

##@ Check it

.PHONY: test
test: ## Run every test that needs no container engine, against a real kube-apiserver
	@assets=$$($(LOCALLY) binaries) && KUBEBUILDER_ASSETS=$$assets $(GO) test $(TESTFLAGS) ./...
	@# The controller's informer cache is optional: the main specs of each kind pass with controller-runtime's too.
	@assets=$$($(LOCALLY) binaries) && KUBEBUILDER_ASSETS=$$assets CACHE=stock $(GO) test $(TESTFLAGS) ./controller \
	  -ginkgo.label-filter '!cache' -ginkgo.focus '(every kind|controller an? (ModelBox|App|Genericdaemon|UnitedDeployment|Eru)) '
	@# The race detector allocates too, so what is counted, and what one request or connection costs, is measured without it.
	@$(GO) test -run 'TestAllocations|TestAttacks|TestTenAtOnce|TestCost|TestALargeObject' ./cron ./webhook ./controller/modelbox
	@cd bench && $(GO) test $(TESTFLAGS) ./...
	@cd hack/tools/release && $(GO) test $(TESTFLAGS) .

.PHONY: e2e
e2e: docker-build ## Run the end-to-end suite on a kind cluster that it makes and removes; needs docker (e2e/suite_test.go: settings)
	@mkdir -p $(BIN) && $(GO) build -modfile=hack/tools/kind/go.mod -o $(BIN)/kind sigs.k8s.io/kind
	@assets=$$($(LOCALLY) binaries) && PATH="$$assets:$(CURDIR)/$(BIN):$$PATH" DOCKER=$(DOCKER) \
	  $(GO) tool ginkgo -p --procs 4 --tags e2e --timeout 60m $(E2EFLAGS) ./e2e

.PHONY: reproducible
reproducible: docker-build ## Build both images once more, from nothing, and compare them; takes minutes, needs docker
	@$(MAKE) --no-print-directory docker-build REGISTRY=again/ DOCKER_BUILD_ARGS="$(DOCKER_BUILD_ARGS) --no-cache"
	@DOCKER=$(DOCKER) ./hack/reproducible.sh $(VERSION) $(REGISTRY)

.PHONY: verify
verify: ## Regenerate, lint, and look for known vulnerabilities; fails if a file had to change
	@./hack/verify.sh

.PHONY: lint
lint: ## Run the linters
	@$(LINT) golangci-lint run ./...
	@cd bench && $(GO) tool -modfile=../hack/tools/lint/go.mod golangci-lint run ./...
	@cd hack/tools/release && $(GO) tool -modfile=../lint/go.mod golangci-lint run ./...

.PHONY: vulnerabilities
vulnerabilities: ## Look for known vulnerabilities in the code that the processes call (GOVULNDB=file:///path: without internet)
	@./hack/vulnerabilities.sh

.PHONY: rest
rest: ## Watch 1000 objects of each kind at rest for 10 minutes; REST_OBJECTS and REST_FOR change that
	@assets=$$($(LOCALLY) binaries) && KUBEBUILDER_ASSETS=$$assets REST_OBJECTS=$${REST_OBJECTS:-1000} REST_FOR=$${REST_FOR:-10m} \
	  $(GO) test ./controller -timeout 4h -count 1 -ginkgo.v -ginkgo.focus 'silent at rest$${KIND:+.*: $$KIND}'

.PHONY: faults
faults: ## Run every fault, every edit of a child and 2,000 hostile objects a kind, and new plans (CONTRIBUTING.md: settings); takes hours
	@assets=$$($(LOCALLY) binaries) && KUBEBUILDER_ASSETS=$$assets MODELBOX_FAULTS=1 MODELBOX_EDITS=all MODELBOX_OBJECTS=$${MODELBOX_OBJECTS:-2000} \
	  $(GO) test ./controller -timeout 6h -count 1 -ginkgo.v \
	  -ginkgo.focus 'whatever goes wrong|answers late|a request without an answer|an edit of a child|a field of a spec|cannot be decoded stop'

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (30s), and compare admission with the API server on MODELBOX_SPECS new specs (20000)
	@./hack/fuzz.sh
	@assets=$$($(LOCALLY) binaries) && KUBEBUILDER_ASSETS=$$assets MODELBOX_SPECS=$${MODELBOX_SPECS:-20000} \
	  $(GO) test ./controller -timeout 1h -count 1 -ginkgo.v -ginkgo.focus 'admission and the API server'

.PHONY: bench
bench: ## Measure the operator beside others, against its budgets (ROUNDS, OBJECTS, ONLY, CONTESTANTS, BENCHFLAGS: docs/performance.md)
	@mkdir -p $(BIN)/bench && cd bench && $(GO) build -o ../$(BIN)/bench/bench .
	@assets=$$($(LOCALLY) binaries) && cd bench && KUBEBUILDER_ASSETS=$$assets exec ../$(BIN)/bench/bench \
	  $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(OBJECTS),-objects $(OBJECTS)) $(if $(ONLY),-only $(ONLY)) \
	  $(if $(CONTESTANTS),-contestants $(CONTESTANTS)) $(BENCHFLAGS)

.PHONY: bench-go
bench-go: ## Run the Go benchmarks, readable by benchstat (COUNT=10)
	@$(GO) test -run '^$$' -bench . -benchmem -count $${COUNT:-10} ./cron/... ./webhook/... ./controller/...

##@ Change it

.PHONY: generate
generate: ## Write deepcopy, CRDs, roles, webhook manifests, clients and the API reference
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
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9.-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
