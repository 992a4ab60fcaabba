// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

const modelsPage = "models.md"

// indented are the examples of a page, and apiVersion is the first line of a manifest.
var (
	indented   = regexp.MustCompile(`(?m)^(    .*\n)+`)
	apiVersion = regexp.MustCompile(`(?m)^apiVersion: \S+$`)
)

// manifests returns the documents of all examples of a page that are manifests.
func manifests(page string) []string {
	var out []string
	for _, block := range indented.FindAllString(page, -1) {
		block = strings.ReplaceAll("\n"+block, "\n    ", "\n")
		for document := range strings.SplitSeq(block, "\n---\n") {
			if apiVersion.MatchString(document) {
				out = append(out, document)
			}
		}
	}
	return out
}

// examples are the manifests of the page of models, and of the page for operators.
type examples struct {
	boxes []*modelv1.ModelBox
	// others are all other objects, by kind and name.
	others map[string]metav1.Object
}

// readExamples decodes each manifest without unknown fields, and runs the defaults, the schema and
// the rules of ModelBoxes, of which none may have an error or a warning.
func readExamples(t *testing.T) examples {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	out := examples{others: map[string]metav1.Object{}}
	for _, manifest := range append(manifests(read(t, modelsPage)), manifests(read(t, "operations.md"))...) {
		if strings.Contains(manifest, "\nkind: ModelBox\n") {
			out.boxes = append(out.boxes, admitted(t, manifest))
			continue
		}
		object, kind, err := strict.Decode([]byte(manifest), nil, nil)
		if err != nil {
			t.Fatalf("%v:\n%s", err, manifest)
		}
		of := object.(metav1.Object)
		out.others[kind.Kind+" "+of.GetName()] = of
	}
	return out
}

// admitted returns a ModelBox as it would be stored.
func admitted(t *testing.T, manifest string) *modelv1.ModelBox {
	t.Helper()
	at := slices.IndexFunc(kinds.All, func(k *kinds.Kind) bool { return k.GVK.Kind == "ModelBox" })
	response, err := create.Dry(context.Background(), kinds.All[at], create.Request{Body: []byte(manifest), YAML: true, Namespace: "default", Validation: "Strict"})
	if err != nil {
		t.Fatal(err)
	}
	if response.Err != nil || len(response.Warnings) > 0 {
		t.Fatalf("error %v, warnings %v:\n%s", response.Err, response.Warnings, manifest)
	}
	box := &modelv1.ModelBox{}
	if err := create.Into(response.Object, box); err != nil {
		t.Fatal(err)
	}
	return box
}

// Each scheme has a whole example, with each object that it refers to.
func TestExamplesOfModelsApplyAsTheyAre(t *testing.T) {
	t.Parallel()
	page, schemes := readExamples(t), map[string]int{}
	for _, box := range page.boxes {
		model := box.Spec.ModelOrDefault()
		uri, err := modelsource.Parse(model.URI)
		if err != nil {
			t.Fatal(err)
		}
		schemes[uri.Scheme]++
		var wanted []string
		if model.Credentials != nil {
			wanted = append(wanted, "Secret "+model.Credentials.Name)
		}
		for _, secret := range box.Spec.ImagePullSecrets {
			wanted = append(wanted, "Secret "+secret.Name)
		}
		for _, claim := range []string{model.Claim, uri.Claim} {
			if claim != "" {
				wanted = append(wanted, "PersistentVolumeClaim "+claim)
			}
		}
		for _, name := range wanted {
			if page.others[name] == nil {
				t.Errorf("ModelBox %s refers to the %s, which is not on the page", box.Name, name)
			}
		}
	}
	for _, scheme := range []string{modelsource.HTTPS, modelsource.HTTP, modelsource.S3, modelsource.Hub, modelsource.Image, modelsource.Claim} {
		if schemes[scheme] == 0 || !anchors(read(t, modelsPage))[scheme] {
			t.Errorf("%s:// has no section with an example", scheme)
		}
	}
}

// variables are the names of environment variables that the program reads, or Go's standard
// library for it.
func variables(t *testing.T) []string {
	t.Helper()
	out := []string{"HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"}
	for _, found := range regexp.MustCompile(`Getenv\("([A-Z0-9_]+)"\)`).FindAllStringSubmatch(sources(t, "../fetch"), -1) {
		out = append(out, found[1])
	}
	return out
}

// sources returns all Go files below a folder but the tests, as one text.
func sources(t *testing.T, folder string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		out.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The keys of Secrets, and the variables that the page names, are those that the program reads.
func TestTheVariablesOfModelsAreRead(t *testing.T) {
	t.Parallel()
	known, page := variables(t), read(t, modelsPage)
	for _, name := range known {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("%s does not name %s", modelsPage, name)
		}
	}
	for _, found := range regexp.MustCompile(`\b(?:AWS|HF|MODEL|SSL)_[A-Z_]+\b`).FindAllString(page, -1) {
		if !slices.Contains(known, found) {
			t.Errorf("%s names %s, which is never read", modelsPage, found)
		}
	}
	for name, object := range readExamples(t).others {
		secret, ok := object.(*corev1.Secret)
		if !ok || secret.Type == corev1.SecretTypeDockerConfigJson {
			continue
		}
		for key := range secret.StringData {
			if !slices.Contains(known, key) {
				t.Errorf("the %s has %s, which is never read", name, key)
			}
		}
	}
}

// The table of last words has the program's words, and the sentences after it are the program's.
func TestTheLastWordsAreTheFetchers(t *testing.T) {
	t.Parallel()
	page, program := read(t, modelsPage), sources(t, "../fetch")
	words := regexp.MustCompile(`(?m)^\t\w+ Word = "(\w+)"$`).FindAllStringSubmatch(program, -1)
	for _, word := range words {
		if !strings.Contains(page, "\n| `["+word[1]+"]` | ") {
			t.Errorf("%s has no row for [%s]", modelsPage, word[1])
		}
	}
	if rows := regexp.MustCompile("(?m)^\\| `\\[").FindAllString(page, -1); len(rows) != len(words) || len(words) < 10 {
		t.Errorf("%s has %d words, and the program %d", modelsPage, len(rows), len(words))
	}
	_, table, found := strings.Cut(page, "\n| the message has | cause |\n")
	if !found {
		t.Fatal("there is no table of sentences")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	for _, row := range rows {
		parts := strings.Split(regexp.QuoteMeta(row[1]), `\.\.\.`)
		if !regexp.MustCompile(strings.Join(parts, `[^"\n]*`)).MatchString(program) {
			t.Errorf("the program does not say %q", row[1])
		}
	}
	if len(rows) < 10 {
		t.Errorf("the table has %d sentences", len(rows))
	}
}

// What status says is word for word that of the golden files.
func TestTheStatusOfModelsIsTheControllers(t *testing.T) {
	t.Parallel()
	page := strings.Join(strings.Fields(read(t, modelsPage)), " ")
	for _, name := range []string{"fetching-model", "model-fetch-failed"} {
		var golden struct {
			Problems []modelv1.Problem `json:"problems"`
		}
		if err := yaml.Unmarshal([]byte(read(t, "../controller/problems/testdata/"+name+".golden.yaml")), &golden); err != nil {
			t.Fatal(err)
		}
		message, _, _ := strings.Cut(golden.Problems[0].Message, "; restarted")
		want := fmt.Sprintf("; %s (container %q of 2 pods", golden.Problems[0].Reason, modelsource.Container)
		if !strings.Contains(page, want) || !strings.Contains(page, message) {
			t.Errorf("%s does not have %q and %q", modelsPage, want, message)
		}
	}
	const noImages = "Forbidden: image volumes need Kubernetes 1.35 or later; use https:// or s3://"
	if err := (&workload.Workload{Owner: &modelv1.ModelBox{}, Model: &modelv1.Model{URI: "oci://a"}}).VerifyModel(&appsv1.Deployment{}); err == nil ||
		!strings.HasSuffix(err.Error(), noImages) || !strings.Contains(page, noImages) {
		t.Errorf("%s does not have the words of %v", modelsPage, err)
	}
}

// What the page says of names, defaults and flags.
func TestTheFactsOfModels(t *testing.T) {
	t.Parallel()
	page := read(t, modelsPage)
	for _, fact := range []string{
		"`" + modelv1.DefaultModelMountPath + "`", "**`sizeLimit`**, " + modelv1.DefaultModelSizeLimit + " by default", "`" + modelsource.Container + "`",
		"the volume `" + modelsource.Volume + "`", "`" + workload.AnnotationFetcher + "`",
	} {
		if !strings.Contains(page, fact) {
			t.Errorf("%s does not say %s", modelsPage, fact)
		}
	}
	controller := sources(t, "../controller")
	for _, flag := range regexp.MustCompile(`--((?:fetch|model)-[a-z]+)\b`).FindAllStringSubmatch(page, -1) {
		if !strings.Contains(controller, `"`+flag[1]+`"`) {
			t.Errorf("%s names the flag --%s, which the controller does not have", modelsPage, flag[1])
		}
	}
	for _, box := range readExamples(t).boxes {
		paths := map[string]bool{}
		for _, c := range podOf(t, box).Spec.Containers {
			paths[c.VolumeMounts[0].SubPath] = true
			if box.Spec.Model.Claim != "" && !strings.Contains(page, "`"+c.VolumeMounts[0].SubPath+"`") {
				t.Errorf("%s does not have the directory %s of %s", modelsPage, c.VolumeMounts[0].SubPath, box.Name)
			}
		}
		if len(paths) != 1 {
			t.Errorf("the containers of %s mount different directories: %v", box.Name, paths)
		}
	}
}

// podOf returns the pod template of a ModelBox.
func podOf(t *testing.T, box *modelv1.ModelBox) *corev1.PodTemplateSpec {
	t.Helper()
	children, err := modelbox.Children(box, modelsource.Fetcher{Image: "modelbox-controller:v1"})
	if err != nil {
		t.Fatal(err)
	}
	return &children[0].(*appsv1.Deployment).Spec.Template
}

// The container that fetches fits the restricted Pod Security Standard, and the example that
// says so of the whole pod is one.
func TestTheRestrictedExampleIsRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	found := false
	for _, box := range readExamples(t).boxes {
		pod := podOf(t, box)
		whole := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
		if box.Name == "bert-restricted" {
			found = true
			if !whole.Allowed {
				t.Error(whole.ForbiddenDetail())
			}
		} else if detail := whole.ForbiddenDetail(); strings.Contains(detail, modelsource.Container) {
			t.Errorf("%s: %s", box.Name, detail)
		}
	}
	if !found {
		t.Error("there is no example of a restricted pod")
	}
}
