// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// command runs a command in the root of the repository with no other environment than a
// PATH that begins with a folder, a home and the variables. It returns the standard output,
// and what the command writes to the standard error if it fails.
func command(t *testing.T, folder string, variables []string, args ...string) (string, string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	run := exec.CommandContext(t.Context(), args[0], args[1:]...)
	run.Dir = ".."
	run.Env = append([]string{"PATH=" + folder + ":" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, variables...)
	run.Stdout, run.Stderr = &stdout, &stderr
	if err := run.Run(); err != nil {
		return "", err.Error() + ": " + stderr.String()
	}
	return stdout.String(), ""
}

// images are those of the webhook and of the controller.
type images struct{ Webhook, Controller string }

// deployed returns the images of the Deployments in the manifests with these variables.
func deployed(t *testing.T, variables ...string) (images, string) {
	t.Helper()
	field, failed := command(t, "", variables, "./hack/images.sh", "kustomization")
	if failed != "" {
		return images{}, failed
	}
	text, failed := command(t, os.Getenv("KUBEBUILDER_ASSETS"), nil, "./hack/manifests.sh", "config/operator", system, "", field)
	return imagesIn(t, text), failed
}

func imagesIn(t *testing.T, text string) images {
	t.Helper()
	objects := parse(t, text)
	checkFetchImage(t, objects)
	return images{
		Webhook:    container(find[*appsv1.Deployment](t, objects, webhookName)).Image,
		Controller: container(find[*appsv1.Deployment](t, objects, controllerName)).Image,
	}
}

func TestImages(t *testing.T) {
	v := version.Version
	for name, test := range map[string]struct {
		variables []string
		want      images
	}{
		"without variables":    {nil, images{"modelbox-webhook:" + v, "modelbox-controller:" + v}},
		"REGISTRY and TAG":     {[]string{"REGISTRY=r.io/team/", "TAG=dev"}, images{"r.io/team/modelbox-webhook:dev", "r.io/team/modelbox-controller:dev"}},
		"IMG with a tag":       {[]string{"IMG=r.io/team/modelbox:v1"}, images{"r.io/team/modelbox-webhook:v1", "r.io/team/modelbox-controller:v1"}},
		"IMG and TAG":          {[]string{"IMG=r.io/team/modelbox", "TAG=dev"}, images{"r.io/team/modelbox-webhook:dev", "r.io/team/modelbox-controller:dev"}},
		"IMG with a port":      {[]string{"IMG=localhost:5000/x"}, images{"localhost:5000/x-webhook:" + v, "localhost:5000/x-controller:" + v}},
		"a tag like a number":  {[]string{"IMG=r.io/x:1e3"}, images{"r.io/x-webhook:1e3", "r.io/x-controller:1e3"}},
		"whole names":          {[]string{"IMG_WEBHOOK=r.io/w:1", "IMG_CONTROLLER=localhost:5000/c:2"}, images{"r.io/w:1", "localhost:5000/c:2"}},
		"a whole name and IMG": {[]string{"IMG_WEBHOOK=r.io/w:1", "IMG=r.io/x:2"}, images{"r.io/w:1", "r.io/x-controller:2"}},
		"tags and digests":     {[]string{"IMG_WEBHOOK=localhost:5000/w:1.10@" + digestA, "IMG_CONTROLLER=c:2@" + digestB}, images{"localhost:5000/w:1.10@" + digestA, "c:2@" + digestB}},
	} {
		t.Run(name, func(t *testing.T) {
			got, failed := deployed(t, test.variables...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("deployed (-want +got): %s\n%s", failed, diff)
			}
		})
	}
}

// The programs that the targets of the Makefile run: they write their arguments instead of
// acting, except for "kubectl kustomize".
const (
	fakeDocker = `#!/bin/sh
echo docker "$@" "GOPROXY=$GOPROXY" >>"$CALLS"
`
	fakeKubectl = `#!/bin/sh
[ "$1" != kustomize ] || exec "$ASSETS/kubectl" "$@"
echo kubectl "$@" >>"$CALLS"
cat >"$APPLIED"
`
)

// makeTargets runs "make" and returns the calls of docker and kubectl, the standard input of
// kubectl, and the error.
func makeTargets(t *testing.T, args ...string) (calls []string, applied, failed string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"docker": fakeDocker, "kubectl": fakeKubectl} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{filepath.Join(dir, "calls"), filepath.Join(dir, "applied")}
	variables := []string{"CALLS=" + files[0], "APPLIED=" + files[1], "ASSETS=" + os.Getenv("KUBEBUILDER_ASSETS")}
	_, failed = command(t, dir, variables, append([]string{"make", "--no-print-directory"}, args...)...)
	var texts []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	return slices.Collect(strings.Lines(texts[0])), texts[1], failed
}

// The commands of the articles: each of them uses the images that were given.
func TestMakeUsesTheImagesThatAreGiven(t *testing.T) {
	const proxy = "GOPROXY=https://proxy.example.com,direct"
	for name, test := range map[string]struct {
		args []string
		// want are parts of each call.
		want [][]string
		// images are those that are applied.
		images images
	}{
		"IMG": {
			[]string{"docker-build", "docker-push", "deploy", "IMG=localhost:5000/team/modelbox:v1"},
			[][]string{
				{"docker build ", " -f Dockerfile.webhook -t localhost:5000/team/modelbox-webhook:v1 ", " VERSION=" + version.Version + " "},
				{"docker build ", " -f Dockerfile.controller -t localhost:5000/team/modelbox-controller:v1 ", " VERSION=" + version.Version + " "},
				{"docker push localhost:5000/team/modelbox-webhook:v1 "},
				{"docker push localhost:5000/team/modelbox-controller:v1 "},
				{"kubectl apply -f -"},
			},
			images{"localhost:5000/team/modelbox-webhook:v1", "localhost:5000/team/modelbox-controller:v1"},
		},
		"IMG_WEBHOOK and IMG_CONTROLLER": {
			[]string{"docker-build", "docker-push", "deploy", "IMG_WEBHOOK=r.io/w:1", "IMG_CONTROLLER=r.io/c:2", "NAMESPACE=team-operator"},
			[][]string{
				{"docker build ", " -f Dockerfile.webhook -t r.io/w:1 "}, {"docker build ", " -f Dockerfile.controller -t r.io/c:2 "},
				{"docker push r.io/w:1 "}, {"docker push r.io/c:2 "}, {"kubectl apply -f -"},
			},
			images{"r.io/w:1", "r.io/c:2"},
		},
		"what the images are built from": {
			[]string{"docker-build", proxy, "GOLANG_IMAGE=r.io/golang:1.26", "BASE_IMAGE=r.io/static", "DOCKER_BUILD_FLAGS=--network host"},
			[][]string{
				{" --build-arg GOPROXY ", " " + proxy, " GOLANG_IMAGE=r.io/golang:1.26 ", " BASE_IMAGE=r.io/static ", " --network host "},
				{" --build-arg GOPROXY ", " " + proxy, " GOLANG_IMAGE=r.io/golang:1.26 ", " BASE_IMAGE=r.io/static ", " --network host "},
			},
			images{},
		},
		"several platforms": {
			[]string{"docker-buildx", "IMG=r.io/x", "TAG=dev", "PLATFORMS=linux/amd64,linux/s390x"},
			[][]string{
				{"docker buildx build --push --platform linux/amd64,linux/s390x -f Dockerfile.webhook -t r.io/x-webhook:dev "},
				{"docker buildx build --push --platform linux/amd64,linux/s390x -f Dockerfile.controller -t r.io/x-controller:dev "},
			},
			images{},
		},
		"digests": {
			[]string{"deploy", "IMG_WEBHOOK=r.io/w@" + digestA, "IMG_CONTROLLER=r.io/c:2@" + digestB},
			[][]string{{"kubectl apply -f -"}},
			images{"r.io/w@" + digestA, "r.io/c:2@" + digestB},
		},
		"undeploy": {
			[]string{"undeploy", "IMG=r.io/x@" + digestA}, [][]string{{"kubectl delete --ignore-not-found -f -"}},
			images{"modelbox-webhook:" + version.Version, "modelbox-controller:" + version.Version},
		},
	} {
		t.Run(name, func(t *testing.T) {
			calls, applied, failed := makeTargets(t, test.args...)
			if failed != "" || len(calls) != len(test.want) {
				t.Fatalf("%d calls, want %d; %s\n%s", len(calls), len(test.want), failed, strings.Join(calls, ""))
			}
			for i, parts := range test.want {
				for _, part := range parts {
					if !strings.Contains(calls[i], part) {
						t.Errorf("call %d is %q, want one with %q", i, calls[i], part)
					}
				}
			}
			if test.images == (images{}) {
				return
			}
			if diff := cmp.Diff(test.images, imagesIn(t, applied)); diff != "" {
				t.Errorf("the manifests' images (-want +got):\n%s", diff)
			}
		})
	}
}

// A target that cannot use the images that are given does nothing, and names the variable.
func TestMakeRefusesImagesThatItCannotUse(t *testing.T) {
	for args, want := range map[string]string{
		"docker-build IMG=r.io/x@" + digestA:                  "IMG: r.io/x@" + digestA + " has a digest",
		"docker-push IMG=modelbox:v1":                         "has no registry to push to: set IMG=",
		"deploy IMG=r.io/team/":                               "IMG: r.io/team/ is not an image reference",
		"docker-build docker-push deploy TAG=feature/x ":      "TAG: feature/x is not a tag",
		"deploy IMG_WEBHOOK=r.io/x:1 IMG_CONTROLLER=r.io/x:1": "IMG_WEBHOOK and IMG_CONTROLLER are both r.io/x:1",
	} {
		t.Run(args, func(t *testing.T) {
			calls, _, failed := makeTargets(t, strings.Fields(args)...)
			if !strings.Contains(failed, want) || len(calls) > 0 {
				t.Errorf("%d calls, %s\nwant none and an error that contains %q", len(calls), failed, want)
			}
		})
	}
}
