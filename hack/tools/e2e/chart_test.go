// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e_test renders charts/modelbox-operator as Helm does, and compares the objects with
// those that kustomize makes of config/.
package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/hack/namespaced/scope"
)

const (
	root    = "../../.."
	folder  = root + "/charts/modelbox-operator"
	system  = "modelbox-system"
	managed = "app.kubernetes.io/managed-by"
	ofChart = "helm.sh/chart"
	policy  = "helm.sh/resource-policy"
)

// objects are the objects of an install by kind, namespace and name.
type objects map[string]map[string]any

var load = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(folder) })

// helm renders the chart with values in YAML.
func helm(t *testing.T, namespace, values string) (map[string]string, error) {
	t.Helper()
	loaded, err := load()
	if err != nil {
		t.Fatal(err)
	}
	set, err := common.ReadValues([]byte(values))
	if err != nil {
		t.Fatal(err)
	}
	release := common.ReleaseOptions{Name: "operator", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(loaded, set, release, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(loaded, all)
}

// rendered returns the objects of the chart, without what is Helm's own, and without its test.
func rendered(t *testing.T, namespace, values string) objects {
	t.Helper()
	files, err := helm(t, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	out := objects{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") && !strings.Contains(name, "/tests/") {
			out.add(t, files[name])
		}
	}
	for key, object := range out {
		withoutHelm(t, key, &unstructured.Unstructured{Object: object})
	}
	return out
}

// withoutHelm removes the labels of Helm, which every object has, and its annotation, which the
// CRDs have.
func withoutHelm(t *testing.T, key string, object *unstructured.Unstructured) {
	t.Helper()
	labels, annotations := object.GetLabels(), object.GetAnnotations()
	if labels[managed] != "Helm" || !strings.HasPrefix(labels[ofChart], "modelbox-operator-") {
		t.Errorf("%s has the labels %v, want those of Helm", key, labels)
	}
	want := map[bool]string{true: "keep"}[object.GetKind() == "CustomResourceDefinition"]
	if annotations[policy] != want {
		t.Errorf("%s has %s=%q, want %q", key, policy, annotations[policy], want)
	}
	maps.DeleteFunc(labels, func(name, _ string) bool { return name == managed || name == ofChart })
	delete(annotations, policy)
	if object.SetAnnotations(annotations); len(annotations) == 0 {
		object.SetAnnotations(nil)
	}
	if object.SetLabels(labels); len(labels) == 0 {
		object.SetLabels(nil)
	}
}

// add decodes YAML strictly. No object may be there twice, and none may be the namespace.
func (o objects) add(t *testing.T, text string) {
	t.Helper()
	for _, object := range decode(t, text) {
		o.put(t, object)
	}
}

func (o objects) put(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if object.GetKind() == "Namespace" {
		return
	}
	key := fmt.Sprintf("%s %s/%s", object.GetKind(), object.GetNamespace(), object.GetName())
	if o[key] != nil {
		t.Errorf("%s is there twice", key)
	}
	o[key] = folded(object.Object).(map[string]any)
}

// folded returns a value in which each expression of CEL has single spaces: the YAML libraries of Helm
// and of kustomize differ in the line breaks that they keep in one.
func folded(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key := range value {
			value[key] = folded(value[key])
			if text, ok := value[key].(string); ok && strings.HasSuffix(key, "xpression") {
				value[key] = strings.Join(strings.Fields(text), " ")
			}
		}
	case []any:
		for i := range value {
			value[i] = folded(value[i])
		}
	}
	return value
}

func decode(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for reader := utilyaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text))); ; {
		document := make([]byte, len(text))
		n, err := reader.Read(document)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(document[:n], &object.Object); err != nil {
			t.Fatalf("%v in\n%s", err, document[:n])
		}
		if len(object.Object) > 0 {
			out = append(out, object)
		}
	}
}

// kustomize renders a kustomization in which CONFIG is the folder config.
func kustomize(t *testing.T, text string) string {
	t.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run the tests with 'make test', or set it to the output of hack/binaries.sh")
	}
	here, err := filepath.Abs(root + "/config")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	config, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text = strings.ReplaceAll(text, "CONFIG", filepath.ToSlash(config))
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), "kustomize", dir)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("kubectl kustomize: %v: %s", err, &stderr)
	}
	return stdout.String()
}

// install returns the objects of a kustomization.
func install(t *testing.T, text string) objects {
	t.Helper()
	out := objects{}
	out.add(t, kustomize(t, text))
	return out
}

// in is the kustomization of an install in another namespace.
func in(namespace string) string {
	return "namespace: " + namespace + "\nresources: [CONFIG]\ntransformers: [CONFIG/fetch-image, CONFIG/namespaced]\n"
}

func compare(t *testing.T, want, got objects) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if diff := cmp.Diff(want[key], got[key]); diff != "" {
			t.Errorf("%s (-kustomize +chart):\n%s", key, changed(diff))
		}
	}
	for key := range got {
		if want[key] == nil {
			t.Errorf("the chart has %s, and kustomize does not", key)
		}
	}
}

// changed returns the lines of a difference that differ, which in a CRD are few.
func changed(diff string) string {
	var out strings.Builder
	for line := range strings.Lines(diff) {
		if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func TestTheDefaultsAreTheInstall(t *testing.T) {
	got := rendered(t, system, "")
	compare(t, install(t, "resources: [CONFIG]"), got)
	if len(got) < 30 {
		t.Errorf("only %d objects were compared", len(got))
	}
}

func TestAnotherNamespace(t *testing.T) {
	compare(t, install(t, in("team-operator")), rendered(t, "team-operator", ""))
}

// YAML would read such a name as a number.
func TestANamespaceWithTheNameOfANumber(t *testing.T) {
	for key := range rendered(t, "1", "monitoring: {enabled: true}") {
		kind, name, _ := strings.Cut(key, " ")
		cluster := strings.HasPrefix(kind, "Cluster") || strings.HasSuffix(kind, "Definition") ||
			strings.HasPrefix(kind, "Validating") || strings.HasPrefix(kind, "Mutating")
		if got, _, _ := strings.Cut(name, "/"); got != map[bool]string{false: "1"}[cluster] {
			t.Errorf("%s is in namespace %q", key, got)
		}
	}
}

// limited are the objects of "make deploy NAMESPACE=own NAMESPACES=..." of a kustomization.
func limited(t *testing.T, kustomization string, namespaces ...string) objects {
	t.Helper()
	all, err := scope.Objects(decode(t, kustomize(t, kustomization)), namespaces)
	if err != nil {
		t.Fatal(err)
	}
	out := objects{}
	for _, object := range all {
		out.put(t, object)
	}
	return out
}

func TestAReleaseThatIsLimitedToNamespaces(t *testing.T) {
	const shared = "crds: {enabled: false}\naggregatedRoles: {enabled: false}\n"
	for _, namespaces := range [][]string{{"a"}, {"team-a", "team-b", "1"}} {
		values := "namespaces: ['" + strings.Join(namespaces, "', '") + "']\n"
		want := limited(t, in("ops"), namespaces...)
		compare(t, want, rendered(t, "ops", values+shared))
		// The first release of a cluster also has what all of them share.
		for key, object := range install(t, in("ops")) {
			if strings.HasPrefix(key, "CustomResourceDefinition ") || strings.HasPrefix(key, "ClusterRole ") && !strings.HasPrefix(key, "ClusterRole /modelbox-controller") {
				want[key] = object
			}
		}
		compare(t, want, rendered(t, "ops", values))
	}
}

// Of the controller's roles only that on the webhook configurations stays a ClusterRole.
func TestALimitedReleaseThatIssuesItsCertificate(t *testing.T) {
	const values = "namespaces: [a, b]\ncrds: {enabled: false}\naggregatedRoles: {enabled: false}\ncerts: {mode: self-managed}\n"
	text := in("ops") + "components: [CONFIG/certs-self-managed]\npatches:\n" +
		patch("controller", add("/containers/0/command/-", "--webhook-certificate-validity=720h"))
	want := limited(t, text, "a", "b")
	if want["ClusterRole /modelbox-controller-certificate-ops"] == nil {
		t.Error("there is no ClusterRole of this install")
	}
	compare(t, want, rendered(t, "ops", values))
}

func TestHelmFindsNothingToImprove(t *testing.T) {
	for _, message := range lint.RunAll(folder, nil, system).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// "helm test" makes a pod that may create ModelBoxes in a namespace where admission is called. No
// Service, policy or disruption budget selects the pod.
func TestTheTestOfARelease(t *testing.T) {
	const values = "controller: {image: {repository: r.io/c, tag: v2}, nodeSelector: {pool: system}}\nimagePullSecrets: [{name: registry}]\n"
	for limit, namespace := range map[string]string{"": "ops", "namespaces: [a, b]": "a"} {
		kind, resource := "ModelBox", "modelboxes.model.github.com"
		if limit == "" {
			kind, resource = "Eru", "erus.mtsre.meitu.com"
			limit = "kinds: [Eru, App]"
		}
		files, err := helm(t, "ops", values+limit)
		if err != nil {
			t.Fatal(err)
		}
		got := objects{}
		got.add(t, files["modelbox-operator/templates/tests/admission.yaml"])
		want := []string{"Pod ops/modelbox-test", "Role " + namespace + "/modelbox-test-ops", "RoleBinding " + namespace + "/modelbox-test-ops", "ServiceAccount ops/modelbox-test"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got))); diff != "" {
			t.Errorf("objects (-want +got):\n%s", diff)
		}
		for key, object := range got {
			meta := unstructured.Unstructured{Object: object}
			if meta.GetAnnotations()["helm.sh/hook"] != "test" || meta.GetLabels()["app.kubernetes.io/name"] != "modelbox-test" {
				t.Errorf("%s has the annotations %v and the labels %v", key, meta.GetAnnotations(), meta.GetLabels())
			}
		}
		rule := got["Role "+namespace+"/modelbox-test-ops"]["rules"].([]any)[0].(map[string]any)
		if may := fmt.Sprint(rule["resources"], ".", rule["apiGroups"]); strings.NewReplacer("[", "", "]", "").Replace(may) != resource {
			t.Errorf("the pod may create %s, want %s", may, resource)
		}
		pod := got["Pod ops/modelbox-test"]["spec"].(map[string]any)
		container := pod["containers"].([]any)[0].(map[string]any)
		if diff := cmp.Diff([]any{"/controller", "--test-admission=" + namespace, "--kinds=" + kind}, container["command"]); diff != "" || container["image"] != "r.io/c:v2" {
			t.Errorf("the pod runs %v of %v", container["command"], container["image"])
		}
		if pod["nodeSelector"] == nil || pod["imagePullSecrets"] == nil {
			t.Errorf("the pod has no node selector, or no pull secret: %v", pod)
		}
	}
}
