// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/internal/version"
)

// docker of a release builds nothing, and writes a digest where it is told to; go compiles nothing, and writes a program
// where it is told to. What
// pushes and signs writes its arguments, and helm also what it prints after a push.
var fakesOfARelease = map[string]string{
	"docker": `#!/bin/sh
while [ "$1" != --metadata-file ]; do shift; done
printf '{\n  "containerimage.digest": "%s"\n}\n' "$DIGEST" >"$2"
`,
	"go":     "#!/bin/sh\n" + `while [ $# -gt 0 ]; do [ "$1" != -o ] || echo program >"$2"; shift; done` + "\n",
	"cosign": "#!/bin/sh\n" + `echo cosign "$@" >>"$CALLS"` + "\n",
	"skopeo": "#!/bin/sh\n" + `echo skopeo "$@" >>"$CALLS"` + "\n",
	"helm":   "#!/bin/sh\n" + `echo helm "$@" >>"$CALLS"; printf 'Pushed: x\nDigest: %s\n' "$CHART" >&2` + "\n",
}

// The manifests and the chart of a release have both images by digest, and these are what is pushed and
// signed.
func TestRelease(t *testing.T) {
	dir, dist := t.TempDir(), filepath.Join(t.TempDir(), "dist")
	for name, text := range fakesOfARelease {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	calls := filepath.Join(dir, "calls")
	runMake := func(args ...string) {
		variables := []string{"REGISTRY=r.io/team/", "COSIGN_KEY=k.key", "CALLS=" + calls, "DIGEST=" + digestA, "CHART=" + digestB, "DIST=" + dist}
		if _, failed := command(t, dir+":"+os.Getenv("KUBEBUILDER_ASSETS"), variables, append([]string{"make"}, args...)...); failed != "" {
			t.Fatal(failed)
		}
	}
	runMake("release", "CLI_PLATFORMS=linux/amd64 windows/arm64")
	checkKrew(t, dist)

	v := version.Version
	reference := func(name string) string { return "r.io/team/" + name + ":" + v + "@" + digestA }
	for _, file := range []string{"install.yaml", "install-self-managed.yaml"} {
		text, err := os.ReadFile(filepath.Join(dist, file))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := imagesIn(t, string(text)), (images{reference(webhookName), reference(controllerName)}); got != want {
			t.Errorf("the images of %s are %v, want %v", file, got, want)
		}
		if issued := strings.Contains(string(text), "cert-manager.io/v1\n"); issued != (file == "install.yaml") {
			t.Errorf("%s has objects of cert-manager: %v", file, issued)
		}
	}
	archive := filepath.Join(dist, "modelbox-operator-"+strings.TrimPrefix(v, "v")+".tgz")
	values, failed := command(t, "", nil, "tar", "-xOzf", archive, "modelbox-operator/values.yaml")
	if want := "repository: r.io/team/" + controllerName + "\n"; failed != "" || !strings.Contains(values, want) || strings.Count(values, "    digest: "+digestA+"\n") != 2 {
		t.Errorf("the values of the chart lack %q, or two digests: %s\n%s", want, failed, values)
	}

	runMake("publish")
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cosign sign-blob --yes --key k.key --bundle " + dist + "/SHA256SUMS.sigstore.json " + dist + "/SHA256SUMS"}
	for _, name := range []string{webhookName, controllerName} {
		want = append(want, "skopeo copy --all --preserve-digests oci-archive:"+dist+"/"+name+"-"+v+".tar docker://r.io/team/"+name+":"+v,
			"cosign sign --yes --key k.key "+reference(name))
	}
	want = append(want, "helm push "+archive+" oci://r.io/team/charts", "cosign sign --yes --key k.key r.io/team/charts/modelbox-operator@"+digestB)
	if got := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, want) {
		t.Errorf("the calls are\n%s\nwant\n%s", text, strings.Join(want, "\n"))
	}
}

// checkKrew checks what krew requires of the manifest of a plug-in, and the archives that it names.
func checkKrew(t *testing.T, dist string) {
	t.Helper()
	type platform struct {
		Selector         struct{ MatchLabels map[string]string }
		URI, SHA256, Bin string
	}
	var plugin struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, Homepage, ShortDescription, Description string
			Platforms                                        []platform
		}
	}
	text, err := os.ReadFile(filepath.Join(dist, "modelbox.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &plugin); err != nil {
		t.Fatal(err)
	}
	spec := plugin.Spec
	if plugin.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || plugin.Kind != "Plugin" || plugin.Metadata.Name != "modelbox" ||
		spec.Version != version.Version || spec.Description == "" || len(spec.ShortDescription) > 50 || len(spec.Platforms) != 2 {
		t.Errorf("the manifest for krew is\n%s", text)
	}
	for _, p := range spec.Platforms {
		file := filepath.Base(p.URI)
		if want := fmt.Sprintf("kubectl-modelbox-%s-%s-%s.tar.gz", version.Version, p.Selector.MatchLabels["os"], p.Selector.MatchLabels["arch"]); file != want {
			t.Errorf("%s is for %v", p.URI, p.Selector.MatchLabels)
		}
		archive, err := os.ReadFile(filepath.Join(dist, file))
		if sum := fmt.Sprintf("%x", sha256.Sum256(archive)); err != nil || sum != p.SHA256 {
			t.Errorf("%s: the sum is %s (%v), want %s", file, sum, err, p.SHA256)
		}
		if names, failed := command(t, "", nil, "tar", "-tzf", filepath.Join(dist, file)); names != "LICENSE\n"+p.Bin+"\n" {
			t.Errorf("%s has %q: %s", file, names, failed)
		}
	}
}

// A pull request is checked by the steps of .ci/run, the end-to-end suite, and on other versions of
// Kubernetes, of which .ci/run has time for a part of the oldest.
func TestPullRequestsAreCheckedAsInCI(t *testing.T) {
	script, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, step := range regexp.MustCompile(`(?m)^step (make .*)$`).FindAllStringSubmatch(string(script), -1) {
		if !strings.HasSuffix(step[1], " QUICK=1") {
			want = append(want, step[1])
		}
	}
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, "make e2e")
	for version := range strings.FieldsSeq(regexp.MustCompile(`(?m)^VERSIONS \?= (.*)$`).FindStringSubmatch(string(makefile))[1]) {
		want = append(want, "make test-versions VERSIONS="+version)
	}
	text, err := os.ReadFile("../.github/workflows/check.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Strategy struct {
				Matrix struct{ Command []string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	if got := workflow.Jobs["make"].Strategy.Matrix.Command; len(want) < 9 || !slices.Equal(got, want) {
		t.Errorf("the commands of the workflow are %q, want %q", got, want)
	}
}

func TestVersionIsSemantic(t *testing.T) {
	// With v in front, all three numbers, and no build metadata, which the tag of an image cannot
	// have: semver.org, without leading zeros.
	semantic := regexp.MustCompile(`^v(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)
	if !semantic.MatchString(version.Version) {
		t.Errorf("VERSION contains %q, want a semantic version such as v1.2.3 or v1.2.3-rc.1", version.Version)
	}
}

func TestCollector(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(version.Collector("webhook"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	metric := families[0].GetMetric()[0]
	got := map[string]string{}
	for _, label := range metric.GetLabel() {
		got[label.GetName()] = label.GetValue()
	}
	want := map[string]string{"program": "webhook", "version": version.Version}
	if families[0].GetName() != "modelbox_build_info" || metric.GetGauge().GetValue() != 1 || !maps.Equal(got, want) {
		t.Errorf("got %v, want modelbox_build_info with %v and value 1", families[0], want)
	}
}
