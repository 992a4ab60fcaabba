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

func imagesIn(t *testing.T, text string) images {
	t.Helper()
	objects := parse(t, text)
	checkFetchImage(t, objects)
	return images{
		Webhook:    container(find[*appsv1.Deployment](t, objects, webhookName)).Image,
		Controller: container(find[*appsv1.Deployment](t, objects, controllerName)).Image,
	}
}

// The programs that the targets of the Makefile run: they write their arguments instead of
// acting, except for "kubectl kustomize".
const (
	fakeDocker = `#!/bin/sh
[ "$1" != version ] || exec echo linux/arm64
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
func TestImages(t *testing.T) {
	v := version.Version
	for args, want := range map[string]images{
		"": {"modelbox-webhook:" + v, "modelbox-controller:" + v}, "REGISTRY=r.io/team/ TAG=dev": {"r.io/team/modelbox-webhook:dev", "r.io/team/modelbox-controller:dev"},
		"IMG=r.io/x TAG=dev": {"r.io/x-webhook:dev", "r.io/x-controller:dev"}, "IMG=localhost:5000/x": {"localhost:5000/x-webhook:" + v, "localhost:5000/x-controller:" + v},
		"IMG=r.io/x:1e3":                    {"r.io/x-webhook:1e3", "r.io/x-controller:1e3"},
		"IMG_WEBHOOK=r.io/w:1 IMG=r.io/x:2": {"r.io/w:1", "r.io/x-controller:2"},
		"IMG_WEBHOOK=r.io/w:1 IMG_CONTROLLER=localhost:5000/c:2 NAMESPACE=team": {"r.io/w:1", "localhost:5000/c:2"},
	} {
		calls, applied, failed := makeTargets(t, append([]string{"docker-build", "deploy"}, strings.Fields(args)...)...)
		if len(calls) != 3 {
			t.Fatalf("%s: %q %s", args, calls, failed)
		}
		img, _, _ := strings.Cut(args, " ")
		if name, given := strings.CutPrefix(img, "IMG="); given != strings.Contains(calls[1], " -t "+name+" --build-arg ") || strings.Contains(calls[0], " -t "+name+" ") {
			t.Errorf("%s: %q, want the very name of IMG for the controller, and for nothing else", args, calls)
		}
		if !strings.Contains(calls[0], " -f Dockerfile.webhook -t "+want.Webhook+" ") || !strings.Contains(calls[1], " -f Dockerfile.controller -t "+want.Controller+" ") {
			t.Errorf("%s: %q", args, calls)
		}
		if got := imagesIn(t, applied); got != want {
			t.Errorf("%s: %v is applied, want %v", args, got, want)
		}
	}
}

func TestMakeTargets(t *testing.T) {
	const pushed, from = "r.io/x-webhook:dev ", "docker-build GOPROXY=https://proxy.example.com,direct GOLANG_IMAGE=r.io/golang:1.26 BASE_IMAGE=r.io/static"
	for args, want := range map[string][]string{
		"docker-push IMG=r.io/x:dev": {"docker push " + pushed, "docker push r.io/x-controller:dev "},
		"docker-buildx IMG=r.io/x:dev PLATFORMS=linux/s390x": {
			"docker buildx build --push --platform linux/s390x -f Dockerfile.webhook -t " + pushed, " --platform linux/s390x -f Dockerfile.controller -t ",
		},
		from:                             {" GOLANG_IMAGE=r.io/golang:1.26 --build-arg BASE_IMAGE=r.io/static ", " GOPROXY=https://proxy.example.com,direct"},
		"undeploy IMG=r.io/x@" + digestA: {"kubectl delete --ignore-not-found -f -"},
		"deploy IMG_WEBHOOK=localhost:5000/w:1.10@" + digestA + " IMG_CONTROLLER=c:2@" + digestB: {"kubectl apply -f -"},
	} {
		calls, applied, failed := makeTargets(t, strings.Fields(args)...)
		if len(calls) != len(want) {
			t.Fatalf("%s: %q %s", args, calls, failed)
		}
		for i, part := range want {
			if !strings.Contains(calls[i], part) {
				t.Errorf("%s: call %d is %q, want one with %q", args, i, calls[i], part)
			}
		}
		if strings.HasPrefix(args, "deploy") && imagesIn(t, applied) != (images{"localhost:5000/w:1.10@" + digestA, "c:2@" + digestB}) {
			t.Errorf("%s: %v is applied", args, imagesIn(t, applied))
		}
	}
}

// A name without a registry is one that nodes pull from docker.io, which does not have it.
func TestAnInstallWithoutARegistry(t *testing.T) {
	for img, want := range map[string]int{"": 2, "IMG=modelbox:v1": 2, "IMG_WEBHOOK=r.io/w": 1, "REGISTRY=r.io/team/": 0, "IMG=localhost:5000/x": 0} {
		run := exec.CommandContext(t.Context(), "./hack/images.sh", "kustomization")
		run.Dir, run.Env = "..", append(os.Environ(), img)
		var stderr bytes.Buffer
		run.Stderr = &stderr
		if err := run.Run(); err != nil || strings.Count(stderr.String(), "images: no registry has modelbox-") != want {
			t.Error(img, err, stderr.String())
		}
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
