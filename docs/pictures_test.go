// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

const picture = "pictures/modelbox.svg"

// drawing is an element of an SVG.
type drawing struct {
	XMLName  xml.Name
	ID       string     `xml:"id,attr"`
	Paths    string     `xml:"data-path,attr"`
	Others   []xml.Attr `xml:",any,attr"`
	Text     string     `xml:",innerxml"`
	Children []drawing  `xml:",any"`
}

func svg(t *testing.T, file string) drawing {
	t.Helper()
	var out drawing
	if err := xml.Unmarshal([]byte(read(t, file)), &out); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return out
}

// each calls f with each element within d, in order.
func (d drawing) each(f func(drawing)) {
	for _, child := range d.Children {
		f(child)
		child.each(f)
	}
}

// find returns the element with an id.
func (d drawing) find(t *testing.T, id string) (found drawing) {
	t.Helper()
	d.each(func(e drawing) {
		if e.ID == id {
			found = e
		}
	})
	if found.ID == "" {
		t.Fatalf("there is no element with the id %s", id)
	}
	return found
}

// words returns the text of an element and of those in it.
func (d drawing) words(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	for decoder := xml.NewDecoder(strings.NewReader(d.Text)); ; {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok {
			out.Write(text)
		}
	}
}

// texts returns the words of each text within an element.
func (d drawing) texts(t *testing.T) (out []string) {
	t.Helper()
	d.each(func(e drawing) {
		if e.XMLName.Local == "text" {
			out = append(out, e.words(t))
		}
	})
	return out
}

// A picture can be shown by a page of any site, is readable in both modes, and by a screen reader.
func TestPictures(t *testing.T) {
	files, err := filepath.Glob("pictures/*.svg")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pictures (%v)", len(files), err)
	}
	for _, file := range files {
		source, root := read(t, file), svg(t, file)
		if len(source) > 200_000 {
			t.Errorf("%s has %d bytes, more than 200,000", file, len(source))
		}
		for _, want := range []string{`role="img"`, `aria-labelledby="title desc"`, "prefers-color-scheme: dark"} {
			if !strings.Contains(source, want) {
				t.Errorf("%s has no %s", file, want)
			}
		}
		for _, id := range []string{"title", "desc"} {
			if root.find(t, id).words(t) == "" {
				t.Errorf("%s has no %s", file, id)
			}
		}
		if found := foreign.FindString(source); found != "" {
			t.Errorf("%s has %s: a page that shows it loads nothing, and runs no script", file, found)
		}
	}
}

var foreign = regexp.MustCompile(`<script|<foreignObject|<image|@import|@font-face|href=|url\([^#]|\son\w+=`)

// The picture shows what "modelbox render" prints for its manifest.
func TestPictureOfAModelBox(t *testing.T) {
	root := svg(t, picture)
	for kind, object := range rendered(t, manifestOf(t, root)) {
		shown := 0
		root.find(t, kind).each(func(e drawing) {
			if e.Paths != "" {
				compareShown(t, e.Paths, e.words(t), object)
				shown++
			}
		})
		if shown < 2 {
			t.Errorf("the picture shows only %d fields of the %s", shown, kind)
		}
	}
}

// manifestOf returns the manifest in the picture, which shortens the hash of the model.
func manifestOf(t *testing.T, root drawing) string {
	t.Helper()
	manifest := strings.Join(root.find(t, "manifest").texts(t), "\n") + "\n"
	short := regexp.MustCompile(`([0-9a-f]+)…`).FindStringSubmatch(manifest)
	if short == nil {
		t.Fatalf("no hash in\n%s", manifest)
	}
	return strings.Replace(manifest, short[0], short[1]+strings.Repeat("0", 64-len(short[1])), 1)
}

// rendered returns the children of a manifest by their kinds.
func rendered(t *testing.T, manifest string) map[string]map[string]any {
	t.Helper()
	var printed, problems bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(manifest), Out: &printed, ErrOut: &problems}
	if code := command.Run(command.Env{IOStreams: streams, Program: "modelbox"}, []string{"render", "-f", "-", "-o", "json"}); code != 0 {
		t.Fatalf("%s\n%s", manifest, problems.String())
	}
	out := map[string]map[string]any{}
	for decoder := json.NewDecoder(&printed); decoder.More(); {
		var object map[string]any
		if err := decoder.Decode(&object); err != nil {
			t.Fatal(err)
		}
		out[object["kind"].(string)] = object
	}
	return out
}

var label = regexp.MustCompile(`(\w+): `)

// compareShown fails unless a text has the values of its paths, in order, and no other names of fields.
func compareShown(t *testing.T, paths, shown string, object map[string]any) {
	t.Helper()
	rest := shown
	for path := range strings.FieldsSeq(paths) {
		value := valueAt(t, path, object)
		if short, _, cut := strings.Cut(rest, "…"); cut && strings.HasPrefix(value, short) {
			rest = ""
			continue
		}
		_, after, found := strings.Cut(rest, value)
		if !found {
			t.Errorf("the picture has %q, and %s is %q", shown, path, value)
		}
		rest = after
	}
	for _, name := range label.FindAllStringSubmatch(shown, -1) {
		if !strings.Contains(paths, "."+name[1]) {
			t.Errorf("the picture has %q, and no field %s of %s", shown, name[1], paths)
		}
	}
}

func valueAt(t *testing.T, path string, object map[string]any) string {
	t.Helper()
	query := jsonpath.New(path)
	var out bytes.Buffer
	if err := errors.Join(query.Parse(path), query.Execute(&out, object)); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return out.String()
}

// The last lines of the picture are what kubectl prints of a ModelBox that is Ready.
func TestPictureOfAStatus(t *testing.T) {
	root := svg(t, picture)
	lines := root.find(t, "status").texts(t)
	spec := struct{ Metadata, Spec map[string]any }{}
	if err := yaml.Unmarshal([]byte(manifestOf(t, root)), &spec); err != nil {
		t.Fatal(err)
	}
	replicas := fmt.Sprint(spec.Spec["replicas"])
	want := [][]string{
		{"$", "kubectl", "get", "mb", fmt.Sprint(spec.Metadata["name"])},
		append([]string{"NAME"}, columns(t)...),
		{fmt.Sprint(spec.Metadata["name"]), "True", status.ReasonReady, replicas, replicas, fmt.Sprint(spec.Spec["image"]), "48s"},
	}
	var got [][]string
	for _, line := range lines {
		got = append(got, strings.Fields(line))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	const format = "%d of %d pods are available"
	if !strings.Contains(read(t, "../controller/deployment/progress.go"), format) ||
		root.find(t, "message").words(t) != strings.ReplaceAll(format, "%d", replicas) {
		t.Errorf("the message of Ready is not %q", root.find(t, "message").words(t))
	}
}

// columns are the titles that kubectl prints for ModelBoxes without "-o wide".
func columns(t *testing.T) (out []string) {
	t.Helper()
	data, err := os.ReadFile("../config/crd/bases/model.github.com_modelboxes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
		if column.Priority == 0 {
			out = append(out, strings.ToUpper(column.Name))
		}
	}
	return out
}

// The first ModelBox of a reader is allowed, and the images that Helm installs are those that make has pushed.
func TestQuickStart(t *testing.T) {
	_, quick, _ := strings.Cut(read(t, "../README.md"), "\n## Quick start\n")
	quick, _, _ = strings.Cut(quick, "\n## ")
	manifest := regexp.MustCompile(`(?s)<<EOF(\n.*?)\n    EOF\n`).FindStringSubmatch(quick)
	image := regexp.MustCompile(`make docker-build .* IMG=(\S+)`).FindStringSubmatch(quick)
	if manifest == nil || image == nil {
		t.Fatalf("no manifest, or no image, in\n%s", quick)
	}
	children := rendered(t, strings.ReplaceAll(manifest[1], "\n    ", "\n"))
	if children["Deployment"] == nil || children["Service"] == nil {
		t.Errorf("the ModelBox has no Deployment, or no Service: %v", children)
	}
	for _, process := range []string{"webhook", "controller"} {
		if want := "--set " + process + ".image.repository=" + image[1] + "-" + process; !strings.Contains(quick, want) {
			t.Errorf("the quick start has no %s", want)
		}
	}
}
