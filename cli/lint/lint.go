// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint checks manifests without a cluster: it finds what admission would refuse or warn
// of, scheduled times that crowd in one minute, and where in the files the causes are.
package lint

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/runs"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Severity is Error for what the API server refuses, Warning for what it warns of, and Note
// for warnings that every object of a kind has, the next runs of an Eru, and for hints.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Finding is one error or warning.
type Finding struct {
	File string `json:"file"`
	// Line is counted from 1.
	Line     int      `json:"line"`
	Severity Severity `json:"severity"`
	// Rule is the type of an error of admission, such as FieldValueInvalid; Syntax of a document
	// that cannot be parsed; NoObject of what is no object of Kubernetes; UnknownKind of a kind or
	// a version that the operator does not have; UnknownField of a field that the schema does not
	// have, or that is set twice; Warning; or Hint of what is valid, and likely to be a mistake.
	Rule      string `json:"rule"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Field is the path of the field, empty if the finding is about the whole object.
	Field string `json:"field,omitempty"`
	// Message is what is wrong with the field.
	Message string `json:"message"`
}

// String returns the finding in the form of compilers, which editors know as well.
func (f *Finding) String() string {
	text := f.Message
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Kind != "" && f.Name != "" {
		text = fmt.Sprintf("%s %q: %s", f.Kind, f.Name, text)
	}
	return fmt.Sprintf("%s:%d: %s: %s", f.File, f.Line, f.Severity, strings.ReplaceAll(text, "\n", "\n    "))
}

// Write writes findings, a line for each.
func Write(w io.Writer, found []Finding) error {
	for i := range found {
		if _, err := fmt.Fprintln(w, &found[i]); err != nil {
			return err
		}
	}
	return nil
}

// Object is a document of one of the five kinds, and the object as it would be stored, nil if it
// would be refused.
type Object struct {
	*manifest.Document
	Kind   *kinds.Kind
	Stored *unstructured.Unstructured
}

// Check returns the findings in documents, and the objects of the five kinds among them. Documents
// of other kinds have no findings. The namespace is that of objects that have none. Sizes are those
// of the cluster; without them, the values of an object with a size are not checked.
func Check(docs []manifest.Document, namespace string, sizes modelbox.Sizes) (found []Finding, checked []Object) {
	found = []Finding{} // In JSON it is a list also if it is empty.
	changes, modes := map[string]int{}, accessModes(docs, namespace)
	for i := range docs {
		c := checker{doc: &docs[i], namespace: namespace, sizes: sizes, changes: changes, modes: modes}
		if object, ok := c.check(); ok {
			checked = append(checked, object)
		}
		found = append(found, c.found...)
	}
	return found, checked
}

// checker collects the findings in one document.
type checker struct {
	doc       *manifest.Document
	namespace string
	sizes     modelbox.Sizes
	changes   map[string]int
	modes     map[string]map[string][]string // Of claims: by namespace and name.
	found     []Finding
}

// check returns the object of the document, and whether it is of one of the five kinds.
func (c *checker) check() (object Object, ours bool) {
	if broken := c.doc.Err; broken != nil {
		c.add(c.doc.Line, Finding{Severity: Error, Rule: "Syntax", Message: broken.Error()})
		return object, false
	}
	kind, unknown := kinds.Match(c.doc.Object.GroupVersionKind())
	switch {
	case unknown != nil:
		c.add(c.doc.LineOf("apiVersion"), Finding{Severity: Error, Rule: "UnknownKind", Message: unknown.Error()})
		return object, true
	case kind != nil:
		return Object{c.doc, kind, c.create(kind)}, true
	case IsNone(c.doc):
		c.add(c.doc.Line, Finding{Severity: Note, Rule: "NoObject", Message: None})
	}
	return object, false
}

// None says that a document is passed over.
const None = "no object of Kubernetes, because it has no apiVersion and kind; it is passed over"

// IsNone reports whether a document that was read is no object of Kubernetes.
func IsNone(doc *manifest.Document) bool {
	gvk := doc.Object.GroupVersionKind()
	return doc.Err == nil && (gvk.Kind == "" || gvk.Version == "")
}

// create adds the findings of a creation, and returns what would be stored.
func (c *checker) create(kind *kinds.Kind) *unstructured.Unstructured {
	object, size := c.assumed()
	resp := create.Dry(kind, create.Request{
		Object: object, Duplicates: c.doc.Duplicates, Namespace: cmp.Or(c.doc.Object.GetNamespace(), c.namespace), Sizes: c.sizes,
	})
	for _, text := range resp.Warnings {
		severity := Warning
		if announcement.MatchString(text) {
			severity = Note
		}
		c.text(text, severity, "Warning")
	}
	for _, err := range resp.Strict {
		c.text(err.Error(), Error, "UnknownField")
	}
	if resp.Object != nil {
		c.hints(resp.Object)
		c.claims(kind, resp.Object)
		c.count(resp.Object, time.Now())
	}
	for _, err := range resp.Invalid {
		f := Finding{Severity: Error, Rule: string(err.Type), Field: err.Field, Message: err.ErrorBody()}
		if f.Field == "<nil>" { // It is about the object as a whole.
			f.Field = ""
		}
		if strings.Contains(f.Message, "must be of type string") {
			f.Message += c.doc.Quotes(f.Field)
		}
		if uri, _ := err.BadValue.(string); strings.HasPrefix(uri, models.Hub+"://") {
			f.Message += "; 'modelbox pin -f " + c.doc.File + "' writes the commit"
		}
		c.add(c.doc.LineOf(f.Field), f)
	}
	if size == "" {
		return resp.Object
	}
	c.text("spec.resourceType: "+size+" is a size of the cluster; name its file with --sizes to check the object with it", Warning, "Warning")
	return nil
}

// assumed returns the object of the document. If it has a size whose values are not known, it is
// returned with that size, and with values that such a size may have: what is wrong then is wrong
// with any of them.
func (c *checker) assumed() (object *unstructured.Unstructured, size string) {
	object = c.doc.Object
	size, _, _ = unstructured.NestedString(object.Object, "spec", "resourceType") // Another type is no size.
	if c.sizes != nil || !modelbox.IsSize(modelv1.ResourceType(size)) {
		return object, ""
	}
	object = object.DeepCopy()
	assumed := map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "1", "memory": "1Gi"}}}
	spec := object.Object["spec"].(map[string]any)
	if spec["image"] == nil { // It is that of a server, which has a port as well.
		assumed["image"], assumed["ports"] = "size:1", []any{map[string]any{"port": int64(80)}}
	}
	maps.Copy(assumed, spec)
	object.Object["spec"] = assumed
	return object, size
}

// maxAtOnce is how many scheduled times of the next day a minute of a namespace may have.
const maxAtOnce = 10

// count counts the scheduled times of a valid object, and warns, once for a namespace, of the first
// that is one too many.
func (c *checker) count(obj *unstructured.Unstructured, now time.Time) {
	t, _ := runs.Of(obj, time.Time{}) // It is valid.
	for at := now; c.changes[t.Namespace] == 0 && t.Advance(at) && t.Time.Sub(now) <= 24*time.Hour; at = t.Time {
		if t.Changes {
			c.changes[t.Minute()]++
		}
		if c.changes[t.Minute()] > maxAtOnce {
			c.changes[t.Namespace]++
			c.text(fmt.Sprintf("%s: namespace %s has more than %d scheduled times at %s; move some of them to other minutes",
				t.Field, t.Namespace, maxAtOnce, t.Time.Format(time.RFC3339)), Warning, "Warning")
		}
	}
}

// modelPath matches an argument, on a line after the one before it, that names the directory or the
// file of a model: --model of vLLM,
// -m of llama.cpp, --model-path of SGLang, --model-repository of Triton, --model_base_path of TensorFlow Serving. A $ may be a variable.
var modelPath = regexp.MustCompile(`(?:^|\n)--?(?:m|model(?:[-_](?:path|dir|file|store|repository|base[-_]path))?)[=\n](/[^\n$]*)$`)

// hints adds what the arguments of a ModelBox with a model name, and no volume has: a directory of
// the image is possible, and a mount path that was mistaken is more likely.
func (c *checker) hints(obj *unstructured.Unstructured) {
	box := &modelv1.ModelBox{}
	err := create.Into(obj, box)
	all := models.Of(&box.Spec)
	if err != nil || len(all) == 0 {
		return // Other kinds have no models.
	}
	template, errs := modelbox.Pods(box, models.Fetcher{Image: models.Container}).Effective()
	at := slices.IndexFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == box.Spec.Name })
	if len(errs) > 0 || at < 0 {
		return
	}
	for i := range box.Spec.Args {
		found := modelPath.FindStringSubmatch(strings.Join(box.Spec.Args[max(i-1, 0):i+1], "\n"))
		if found != nil && !isMounted(template.Spec.Containers[at].VolumeMounts, path.Clean(found[1])) {
			c.text(fmt.Sprintf("spec.args[%d]: %s is in no volume; %s is mounted at %s", i, path.Clean(found[1]), all[0].At, all[0].MountPath), Note, "Hint")
		}
	}
}

// isMounted reports whether a path is in a volume, or has one below it.
func isMounted(mounts []corev1.VolumeMount, named string) bool {
	return slices.ContainsFunc(mounts, func(m corev1.VolumeMount) bool {
		at := path.Clean(m.MountPath) + "/"
		return strings.HasPrefix(named+"/", at) || strings.HasPrefix(at, strings.TrimSuffix(named, "/")+"/")
	})
}

var (
	// announcement matches the warnings that every Eru, and every object with schedules, has.
	announcement = regexp.MustCompile(`^spec\.(schedule: the next restarts are at|enabled is false: it would run at|schedules\[\d+\]: \d+ replicas from) `)
	unknownField = regexp.MustCompile(`^unknown field "(.*?)"(?:;|$)`)
	yamlLine     = regexp.MustCompile(`^line (\d+): `)
)

// text adds a finding that the server would send as a text, which names a line or a field.
func (c *checker) text(text string, severity Severity, rule string) {
	f := Finding{Severity: severity, Rule: rule, Message: text}
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		n, _ := strconv.Atoi(found[1]) // The expression matches digits only.
		f.Message = strings.TrimPrefix(text, found[0])
		c.add(n, f)
		return
	}
	if found := unknownField.FindStringSubmatch(text); found != nil {
		f.Field = found[1]
	} else if path, message, ok := strings.Cut(text, ": "); ok && !strings.ContainsAny(path, ` "`) {
		f.Field, f.Message = path, message
	}
	c.add(c.doc.LineOf(f.Field), f)
}

func (c *checker) add(line int, f Finding) {
	f.File, f.Line = c.doc.File, line
	f.Kind, f.Namespace, f.Name = c.doc.Object.GetKind(), c.doc.Object.GetNamespace(), c.doc.Object.GetName()
	c.found = append(c.found, f)
}

// Count returns the number of findings of each severity.
func Count(found []Finding) map[Severity]int {
	counts := map[Severity]int{}
	for _, f := range found {
		counts[f.Severity]++
	}
	return counts
}
