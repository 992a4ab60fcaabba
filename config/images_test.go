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

	"github.com/distribution/reference"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

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

// imageOf returns the image that is built or pushed for a process, and the error.
func imageOf(t *testing.T, use, process string, variables []string) (string, string) {
	t.Helper()
	out, failed := command(t, "", variables, "./hack/images.sh", use, process)
	return strings.TrimSuffix(out, "\n"), failed
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
		// want are the images that are deployed. Those that are built are the same, except for
		// those with a digest, which cannot be built.
		want images
	}{
		"without variables":         {nil, images{"modelbox-webhook:" + v, "modelbox-controller:" + v}},
		"empty variables":           {[]string{"IMG=", "IMG_WEBHOOK=", "IMG_CONTROLLER=", "REGISTRY=", "TAG="}, images{"modelbox-webhook:" + v, "modelbox-controller:" + v}},
		"TAG":                       {[]string{"TAG=1.10"}, images{"modelbox-webhook:1.10", "modelbox-controller:1.10"}},
		"REGISTRY":                  {[]string{"REGISTRY=r.io/team/"}, images{"r.io/team/modelbox-webhook:" + v, "r.io/team/modelbox-controller:" + v}},
		"REGISTRY and TAG":          {[]string{"REGISTRY=r.io/team/", "TAG=dev"}, images{"r.io/team/modelbox-webhook:dev", "r.io/team/modelbox-controller:dev"}},
		"IMG with a tag":            {[]string{"IMG=r.io/team/modelbox:v1"}, images{"r.io/team/modelbox-webhook:v1", "r.io/team/modelbox-controller:v1"}},
		"IMG without a tag":         {[]string{"IMG=r.io/team/modelbox"}, images{"r.io/team/modelbox-webhook:" + v, "r.io/team/modelbox-controller:" + v}},
		"IMG and TAG":               {[]string{"IMG=r.io/team/modelbox", "TAG=dev"}, images{"r.io/team/modelbox-webhook:dev", "r.io/team/modelbox-controller:dev"}},
		"the tag of IMG wins":       {[]string{"IMG=r.io/team/modelbox:v1", "TAG=dev"}, images{"r.io/team/modelbox-webhook:v1", "r.io/team/modelbox-controller:v1"}},
		"IMG with a port":           {[]string{"IMG=localhost:5000/x"}, images{"localhost:5000/x-webhook:" + v, "localhost:5000/x-controller:" + v}},
		"IMG with a port and a tag": {[]string{"IMG=localhost:5000/x:v1"}, images{"localhost:5000/x-webhook:v1", "localhost:5000/x-controller:v1"}},
		"IMG at an IPv6 address":    {[]string{"IMG=[::1]:5000/x:v1"}, images{"[::1]:5000/x-webhook:v1", "[::1]:5000/x-controller:v1"}},
		"IMG of kubebuilder":        {[]string{"IMG=controller:latest"}, images{"controller-webhook:latest", "controller-controller:latest"}},
		"a tag like a number":       {[]string{"IMG=r.io/x:1e3"}, images{"r.io/x-webhook:1e3", "r.io/x-controller:1e3"}},
		"whole names":               {[]string{"IMG_WEBHOOK=r.io/w:1", "IMG_CONTROLLER=localhost:5000/c:2"}, images{"r.io/w:1", "localhost:5000/c:2"}},
		"whole names without tags":  {[]string{"IMG_WEBHOOK=localhost:5000/w", "IMG_CONTROLLER=c", "TAG=dev"}, images{"localhost:5000/w:dev", "c:dev"}},
		"whole names win over IMG":  {[]string{"IMG_WEBHOOK=r.io/w:1", "IMG_CONTROLLER=r.io/c:1", "IMG=r.io/x:2"}, images{"r.io/w:1", "r.io/c:1"}},
		"a whole name and IMG":      {[]string{"IMG_WEBHOOK=r.io/w:1", "IMG=r.io/x:2"}, images{"r.io/w:1", "r.io/x-controller:2"}},
		"a whole name and REGISTRY": {[]string{"IMG_CONTROLLER=r.io/c:1", "REGISTRY=r.io/team/"}, images{"r.io/team/modelbox-webhook:" + v, "r.io/c:1"}},
		"digests":                   {[]string{"IMG_WEBHOOK=localhost:5000/w@" + digestA, "IMG_CONTROLLER=c@" + digestB}, images{"localhost:5000/w@" + digestA, "c@" + digestB}},
		"tags and digests":          {[]string{"IMG_WEBHOOK=localhost:5000/w:1.10@" + digestA, "IMG_CONTROLLER=c:2@" + digestB}, images{"localhost:5000/w:1.10@" + digestA, "c:2@" + digestB}},
	} {
		t.Run(name, func(t *testing.T) {
			got, failed := deployed(t, test.variables...)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("deployed (-want +got): %s\n%s", failed, diff)
			}
			checkBuilt(t, test.want, test.variables)
		})
	}
}

// checkBuilt checks that the images that are deployed are those that are built, and pushed if
// their names have a registry or an account. An image with a digest cannot be built.
func checkBuilt(t *testing.T, want images, variables []string) {
	t.Helper()
	for _, use := range []string{"build", "push"} {
		var got images
		var failed string
		if got.Webhook, failed = imageOf(t, use, "webhook", variables); failed == "" {
			got.Controller, failed = imageOf(t, use, "controller", variables)
		}
		var refused string
		switch {
		case strings.Contains(want.Webhook+want.Controller, "@"):
			refused = want.Webhook + " has a digest"
		case use == "push" && (!strings.Contains(want.Webhook, "/") || !strings.Contains(want.Controller, "/")):
			refused = " has no registry to push to"
		}
		switch {
		case refused == "" && got != want:
			t.Errorf("%s: %+v, want %+v, %s", use, got, want, failed)
		case !strings.Contains(failed, refused):
			t.Errorf("%s: %+v, %q, want an error that contains %q", use, got, failed, refused)
		}
	}
}

func TestImagesThatAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		variables []string
		want      string
	}{
		"IMG with a digest":            {[]string{"IMG=r.io/x@" + digestA}, "IMG: r.io/x@" + digestA + " has a digest, which is that of one image, and there are two: set IMG_WEBHOOK and IMG_CONTROLLER"},
		"IMG with a tag and a digest":  {[]string{"IMG=r.io/x:v1@" + digestA}, "set IMG_WEBHOOK and IMG_CONTROLLER"},
		"IMG as a prefix":              {[]string{"IMG=r.io/team/"}, "IMG: r.io/team/ is not an image reference such as registry.example.com/team/modelbox:v1"},
		"IMG with a scheme":            {[]string{"IMG=https://r.io/x"}, "IMG: https://r.io/x is not an image reference"},
		"IMG with a capital letter":    {[]string{"IMG=r.io/Team/x"}, "IMG: r.io/Team/x is not an image reference"},
		"an empty tag":                 {[]string{"IMG_WEBHOOK=r.io/x:"}, "IMG_WEBHOOK: r.io/x: is not an image reference"},
		"a digest that is too short":   {[]string{"IMG_CONTROLLER=r.io/x@sha256:1"}, "IMG_CONTROLLER: r.io/x@sha256:1 is not an image reference"},
		"a TAG that is no tag":         {[]string{"TAG=feature/x"}, "TAG: feature/x is not a tag"},
		"a TAG that is a whole name":   {[]string{"TAG=x:v1", "IMG=r.io/x"}, "TAG: x:v1 is not a tag"},
		"a REGISTRY that is not one":   {[]string{"REGISTRY=https://r.io/"}, "REGISTRY: https://r.io/modelbox-webhook is not an image reference"},
		"two prefixes":                 {[]string{"IMG=r.io/x", "REGISTRY=r.io/team/"}, "IMG and REGISTRY are both set"},
		"one image for both processes": {[]string{"IMG_WEBHOOK=r.io/x:v1", "IMG_CONTROLLER=r.io/x:v1"}, "IMG_WEBHOOK and IMG_CONTROLLER are both r.io/x:v1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, failed := deployed(t, test.variables...); !strings.Contains(failed, test.want) {
				t.Errorf("%v, %q, want an error that contains %q", got, failed, test.want)
			}
		})
	}
}

// The grammar of the script is that of the library.
func TestReferencesAreThoseOfTheLibrary(t *testing.T) {
	for _, ref := range []string{
		"a", "a:b", "a/b", "A/b", "a/B", "localhost/a", "localhost:5000/a", "localhost:5000", "localhost:x/a", "a.b/c", "a..b/c", "-a/b", "a-/b", "a.b:1/c:2",
		"[::1]/a", "[::1]:1/a", "[::g]/a", "::1/a", "a_b", "a__b", "a___b", "a--b", "a-_b", "a.", "_a", "a/", "/a", "a//b", "a b", "a:", "a:-b", "a:.b", "a:_b", "a:B.c-d_e",
		"a:b:c", "a@" + digestA, "a:b@" + digestA, "a@sha256:" + strings.Repeat("A", 64), "a@", "a@b", "a@sha512:" + strings.Repeat("0", 128),
		"a:" + strings.Repeat("b", 128), "a:" + strings.Repeat("b", 129), "a\nb", "a:b\n", "ä", "a:$b", "$(a)", "a;b", "*", "xn--abc.example/a", "1.2.3.4:5/6:7",
	} {
		_, err := reference.Parse(ref)
		// The errors that are not about the grammar are not those of the script.
		valid := err == nil || !strings.Contains(err.Error(), reference.ErrReferenceInvalidFormat.Error()) && !strings.Contains(err.Error(), reference.ErrNameContainsUppercase.Error())
		if _, failed := command(t, "", []string{"IMG_WEBHOOK=" + ref}, "./hack/images.sh", "kustomization"); valid != (failed == "") {
			t.Errorf("%q: the library: %v; the script: %q", ref, err, failed)
		}
	}
}

// A node that has an image, such as one of kind after "kind load", uses it, whatever its tag.
func TestLoadedImagesAreNotPulled(t *testing.T) {
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		if got := container(d).ImagePullPolicy; got != corev1.PullIfNotPresent {
			t.Errorf("imagePullPolicy is %q, want %q: without it, the tag latest is pulled in any case", got, corev1.PullIfNotPresent)
		}
	})
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

func TestADefaultBuildSetsNoProxy(t *testing.T) {
	calls, _, failed := makeTargets(t, "docker-build", "GOPROXY=")
	if text := strings.Join(calls, ""); failed != "" || len(calls) != 2 || strings.Contains(text, "--build-arg GOPROXY") {
		t.Errorf("%s\n%s", failed, text)
	}
}

// A target that cannot use the images that are given does nothing, and names the variable.
func TestMakeRefusesImagesThatItCannotUse(t *testing.T) {
	for args, want := range map[string]string{
		"docker-build IMG=r.io/x@" + digestA:            "IMG: r.io/x@" + digestA + " has a digest",
		"docker-build IMG_CONTROLLER=r.io/x@" + digestA: "IMG_CONTROLLER: r.io/x@" + digestA + " has a digest",
		"docker-push":                                    "has no registry to push to: set IMG=",
		"docker-push IMG=modelbox:v1":                    "has no registry to push to: set IMG=",
		"docker-buildx TAG=dev":                          "has no registry to push to: set IMG=",
		"deploy IMG=r.io/x@" + digestA:                   "set IMG_WEBHOOK and IMG_CONTROLLER",
		"deploy IMG=r.io/team/":                          "IMG: r.io/team/ is not an image reference",
		"install.yaml IMG=r.io/team/":                    "IMG: r.io/team/ is not an image reference",
		"e2e IMG=r.io/team/":                             "IMG: r.io/team/ is not an image reference",
		"reproducible IMG=r.io/team/":                    "IMG: r.io/team/ is not an image reference",
		"release IMG=r.io/x":                             "release: IMG, IMG_WEBHOOK and IMG_CONTROLLER cannot be set",
		"release IMG_WEBHOOK=r.io/w":                     "release: IMG, IMG_WEBHOOK and IMG_CONTROLLER cannot be set",
		"release TAG=dev":                                "release: TAG is dev, and the tag of a release is its version",
		"release-again IMG_CONTROLLER=r.io/w":            "release: IMG, IMG_WEBHOOK and IMG_CONTROLLER cannot be set",
		"docker-build docker-push deploy TAG=feature/x ": "TAG: feature/x is not a tag",
	} {
		t.Run(args, func(t *testing.T) {
			calls, _, failed := makeTargets(t, strings.Fields(args)...)
			if !strings.Contains(failed, want) || len(calls) > 0 {
				t.Errorf("%d calls, %s\nwant none and an error that contains %q", len(calls), failed, want)
			}
		})
	}
}
