# Every target with its one line: make help.
SHELL := /usr/bin/env bash -o pipefail
.SHELLFLAGS := -ec
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# No target is a file.
.PHONY: $(shell sed -nE 's/^([a-z0-9.-]+):.*\#\# .*/\1/p' Makefile)

GO ?= go
# The same flags for the control plane, the product and the tests, so that each package is compiled
# once. No C compiler is needed but for test-race.
export CGO_ENABLED = 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
# Where kubectl of the local cluster, its kubeconfig and the built binaries are.
BIN = bin
# Built and then run, not "go run": that would swallow signals and exit codes.
PROGRAMS = mkdir -p $(BIN) && $(GO) build -o $(BIN)/ ./webhook ./controller ./hack/local
# The one place that says which version this is.
VERSION := $(shell cat internal/version/VERSION)
DOCKER ?= docker
# What the images are built from: GOLANG_IMAGE and BASE_IMAGE.
include hack/base-images.mk
# The images' names: IMG=registry.example.com/team/modelbox:v1 is modelbox-webhook:v1 and
# modelbox-controller:v1 there, IMG_WEBHOOK and IMG_CONTROLLER are whole names, and without
# these REGISTRY is what comes before modelbox-webhook and modelbox-controller. TAG is the tag
# of a name without one.
IMG ?=
IMG_WEBHOOK ?=
IMG_CONTROLLER ?=
REGISTRY ?=
TAG ?= $(VERSION)
export IMG IMG_WEBHOOK IMG_CONTROLLER REGISTRY TAG
IMAGES = ./hack/images.sh
# The platforms of a release and of docker-buildx, separated by spaces or commas, and the folder
# that a release is written into.
PLATFORMS ?= linux/amd64 linux/arm64
CLI_PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
DIST ?= dist
# What cosign signs a release with: a key, or "keyless", the identity of a workflow.
COSIGN_KEY ?=
COSIGN_FLAGS = $(if $(COSIGN_KEY),--yes $(addprefix --key ,$(filter-out keyless,$(COSIGN_KEY))))
export DOCKER_BUILDKIT = 1
export E2E_CLUSTER E2E_NODE_IMAGE E2E_CERT_MANAGER E2E_NGINX_IMAGE E2E_NGINX_OTHER_IMAGE E2E_BUSYBOX_IMAGE E2E_KEEP

# Reproducible: the revision is the commit's, and so is the time of creation. GOPROXY has no
# value here, so docker takes it from the environment.
DOCKER_BUILD_ARGS = --build-arg VERSION=$(VERSION) \
  --build-arg GOLANG_IMAGE=$(GOLANG_IMAGE) --build-arg BASE_IMAGE=$(BASE_IMAGE) \
  --build-arg REVISION=$$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
  $(if $(GOPROXY),--build-arg GOPROXY)
# More flags of docker build, such as --network host or --build-arg HTTPS_PROXY=...
DOCKER_BUILD_FLAGS ?=
# The operator's own namespace, and those, separated by commas, that it is limited to; none is
# the whole cluster.
NAMESPACE ?= modelbox-system
NAMESPACES ?=
# The versions of Kubernetes that test-versions runs, of hack/tools/kube/versions.
VERSIONS ?= 1.30.14 1.33.13 1.34.4 1.36.3
# Who issues the certificate of the webhook: cert-manager, or self-managed, which is the controller.
CERTS ?= cert-manager
# The kinds of the install, such as ModelBox,App; all by default.
KINDS ?=
MANIFESTS = ./hack/manifests.sh $(1) "$(NAMESPACE)" "$(NAMESPACES)"
INSTALL = images=$$($(IMAGES) kustomization); $(call MANIFESTS,config) "$$images" "$(CERTS)" "$(KINDS)"

##@ Try it

demo: ## Show the main job on a real control plane, then take it all down (KEEP=1 leaves it running)
	@./hack/binaries.sh >/dev/null && $(PROGRAMS) && exec hack/local/demo.sh

run: ## Run both processes here, for the current cluster or a local one (ENABLE_WEBHOOKS=false: the controller alone; LOCAL=1, CONTEXT=name: docs/run.md)
	@$(PROGRAMS) && exec $(BIN)/local

cluster-up: ## Start a local control plane with simulated nodes; kubeconfig at bin/kubeconfig
	@./hack/local/cluster.sh up

cluster-down: ## Stop the local control plane and leave nothing running
	@./hack/local/cluster.sh down

##@ Deploy it

docker-build: ## Build both images for this machine's platform (IMG=registry.example.com/team/modelbox:v1 GOPROXY=...: docs/install.md)
	@platform=$$($(DOCKER) version --format '{{.Server.Os}}/{{.Server.Arch}}'); \
	for process in webhook controller; do \
	  names=$$($(IMAGES) names $$process); \
	  echo "building" $$names "for $$platform"; \
	  $(DOCKER) build --quiet -f Dockerfile.$$process $$(printf -- '-t %s ' $$names) $(DOCKER_BUILD_ARGS) $(DOCKER_BUILD_FLAGS) . ; \
	done

docker-push: ## Push the images that docker-build has built (IMG as there)
	@for process in webhook controller; do \
	  image=$$($(IMAGES) push $$process); \
	  echo "pushing $$image"; \
	  $(DOCKER) push $$image; \
	done

docker-buildx: ## Build both images for PLATFORMS and push them (IMG as for docker-build); needs docker buildx
	@for process in webhook controller; do \
	  image=$$($(IMAGES) push $$process); \
	  echo "building and pushing $$image"; \
	  $(DOCKER) buildx build --push --platform "$$(tr -s ' ' , <<<"$(PLATFORMS)")" -f Dockerfile.$$process -t $$image \
	    $(DOCKER_BUILD_ARGS) $(DOCKER_BUILD_FLAGS) . ; \
	done

release: ## Write images (OCI) with SBOMs, install.yaml, the chart, modelbox and checksums into dist/, signed with COSIGN_KEY; needs docker buildx (docs/install.md)
	@VERSION=$(VERSION) PLATFORMS="$$(tr , ' ' <<<"$(PLATFORMS)")" CLI_PLATFORMS="$(CLI_PLATFORMS)" DOCKER="$(DOCKER)" COSIGN_FLAGS="$(COSIGN_FLAGS)" \
	  DOCKER_BUILD_ARGS="$(DOCKER_BUILD_ARGS) $(DOCKER_BUILD_FLAGS)" ./hack/release.sh $(DIST)

publish: ## Push the images and the chart that "make release" has written, and sign them (REGISTRY, COSIGN_KEY as there); needs skopeo and helm
	@VERSION=$(VERSION) COSIGN_FLAGS="$(COSIGN_FLAGS)" ./hack/publish.sh $(DIST)

base-images: ## Write the digests that the tags of the base images have now into hack/base-images.mk
	@./hack/base-images.sh

install: ## Apply the CRDs to the cluster of the current kubeconfig
	@kubectl apply -k config/crd

uninstall: ## Delete the CRDs, and with them every object of the five kinds and all that these own
	@kubectl delete --ignore-not-found -k config/crd

deploy: ## Apply the whole install to the current cluster, which needs cert-manager unless CERTS=self-managed (IMG; KINDS=ModelBox NAMESPACE=ops NAMESPACES=a,b: docs/install.md)
	@$(INSTALL) | kubectl apply -f -

undeploy: ## Delete the operator and its namespace; CRDs, objects and what these own stay (NAMESPACE, NAMESPACES, CERTS as for deploy)
	@$(call MANIFESTS,config/operator) "" "$(CERTS)" | kubectl delete --ignore-not-found -f -

install.yaml: ## Write the whole install into dist/install.yaml (IMG, KINDS, NAMESPACE, NAMESPACES, CERTS as for deploy)
	@mkdir -p dist; $(INSTALL) >dist/install.yaml; echo "wrote dist/install.yaml"

##@ Check it

test: ## Run what a change can break in minutes, against a real kube-apiserver (TESTFLAGS, GINKGOFLAGS: CONTRIBUTING.md)
	@assets=$$(./hack/binaries.sh) && KUBEBUILDER_ASSETS=$$assets ./hack/test.sh

test-race: ## Run the tests of concurrent packages with the race detector; needs a C compiler (RACE='./controller ./webhook/...')
	@assets=$$(./hack/binaries.sh) && KUBEBUILDER_ASSETS=$$assets ./hack/test-race.sh $(RACE)

test-long: ## Run all cases of faults, edits, agreement, upgrades and permissions, and attacks, with new seeds; takes hours (LONG=./controller)
	@assets=$$(./hack/binaries.sh) && KUBEBUILDER_ASSETS=$$assets MODELBOX_LONG=1 \
	  $(GO) test -vet=off -count 1 -timeout 8h $(TESTFLAGS) $(or $(LONG),./...)
	@cd fetch && MODELBOX_LONG=1 $(GO) test -vet=off -count 1 -timeout 2h $(TESTFLAGS) ./...
	@$(if $(LONG),,$(MAKE) --no-print-directory test-versions)

test-versions: ## Install and test the operator on other versions of Kubernetes (VERSIONS=1.30.14; QUICK=1: what takes a minute)
	@$(PROGRAMS) && ./hack/test-versions.sh $(VERSIONS)

fuzz: ## Run every fuzz target for FUZZTIME each (30s)
	@./hack/fuzz.sh

e2e: docker-build ## Run the end-to-end suite on a kind cluster that it makes and removes; needs docker, and g++ (e2e/suite_test.go: settings)
	@mkdir -p $(BIN) && $(GO) build -modfile=hack/tools/e2e/go.mod -o $(BIN)/kind sigs.k8s.io/kind
	@$(GO) build -modfile=hack/tools/e2e/go.mod -o $(BIN)/helm helm.sh/helm/v4/cmd/helm
	@assets=$$(./hack/binaries.sh) && PATH="$$assets:$(CURDIR)/$(BIN):$$PATH" DOCKER=$(DOCKER) GOLANG_IMAGE=$(GOLANG_IMAGE) E2E_DIST=$(abspath $(E2E_DIST)) \
	  $(GO) tool ginkgo --procs 3 --tags e2e --timeout 60m $(E2EFLAGS) ./e2e

reproducible: docker-build ## Build both images once more, from nothing, and compare them; takes minutes, needs docker
	@$(MAKE) --no-print-directory docker-build IMG= IMG_WEBHOOK= IMG_CONTROLLER= REGISTRY=again/ DOCKER_BUILD_FLAGS="$(DOCKER_BUILD_FLAGS) --no-cache"
	@DOCKER=$(DOCKER) ./hack/reproducible.sh

verify: ## Regenerate, lint, and look for known vulnerabilities; fails if a file had to change
	@./hack/verify.sh

lint: ## Run the linters in each module that has code, and on the workflows
	@$(GO) tool -modfile=hack/tools/lint/go.mod actionlint -shellcheck= -pyflakes= .github/workflows/*.yaml
	@git ls-files go.mod '*/go.mod' | xargs -n 1 dirname | while read -r module; do \
	  [ -z "$$(git ls-files "$$module/*.go")" ] || \
	    (cd "$$module" && $(GO) tool -modfile=$(CURDIR)/hack/tools/lint/go.mod golangci-lint run ./...); \
	done

vulnerabilities: ## Look for known vulnerabilities in the code that the processes call (GOVULNDB=file:///path: without internet)
	@./hack/vulnerabilities.sh

bench: ## Measure the operator beside a raw client and a plain operator (ROUNDS, OBJECTS, MANY, ONLY: docs/performance.md)
	@mkdir -p $(BIN)/bench && cd bench && $(GO) build -o ../$(BIN)/bench/bench .
	@assets=$$(./hack/binaries.sh) && KUBEBUILDER_ASSETS=$$assets exec $(BIN)/bench/bench \
	  $(if $(ROUNDS),-rounds $(ROUNDS)) $(if $(OBJECTS),-objects $(OBJECTS)) $(if $(MANY),-many $(MANY)) $(if $(ONLY),-only $(ONLY))

##@ Change it

generate: ## Write deepcopy, CRDs, roles, webhook manifests, the Helm chart, clients, and the references of the API, of modelbox and of the flags
	@./hack/generate.sh

manifests: ## Write the part of these that is in config/ and charts/: CRDs, roles, webhook manifests, the Helm chart
	@./hack/generate.sh manifests

build: ## Build both processes, and fetch-model, into bin/
	@$(GO) build -o $(BIN)/webhook ./webhook
	@$(GO) build -o $(BIN)/controller ./controller
	@cd fetch && $(GO) build -o ../$(BIN)/fetch-model .

cli: ## Build the command bin/modelbox, and bin/kubectl-modelbox for "kubectl modelbox" (docs/cli.md)
	@$(GO) build -ldflags '-s -w' -o $(BIN)/modelbox ./cli
	@ln -sf modelbox $(BIN)/kubectl-modelbox

picture: cli ## Draw what a user sees in the demo into docs/pictures/terminal.svg, for README
	@./hack/binaries.sh >/dev/null && $(PROGRAMS) && PICTURE=docs/pictures/terminal.svg exec hack/local/demo.sh

docs-site: ## Build docs/ as a site with a search into dist/site; needs Node 18 or later with npm (BASE=/path/ if it is not at the root)
	@command -v npm >/dev/null || { echo "docs-site: this needs Node 18 or later, with npm" >&2; exit 1; }
	@cd hack/site && npm ci --ignore-scripts --no-audit --no-fund && npx vitepress build 2>&1 | awk '{print} /Error:/ {failed = 1} END {exit failed}'

clean: ## Remove what was built here; the cached Kubernetes binaries stay
	@rm -rf $(BIN) dist

help: ## List every target
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9.-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
