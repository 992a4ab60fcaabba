// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lint checks manifests without a cluster: it finds what admission would refuse or warn
// of, and where in the files the causes are.
package lint

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
)

// Severity is Error for what the API server refuses, Warning for what it warns of, and Note
// for warnings that every object of a kind has: the next runs of an Eru.
type Severity string

// The severities, as SARIF names them.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// Rules that are no type of an error of admission.
const (
	// RuleSyntax is that of a document that cannot be parsed.
	RuleSyntax = "Syntax"
	// RuleUnknownKind is that of a kind or a version that the operator does not have.
	RuleUnknownKind = "UnknownKind"
	// RuleUnknownField is that of a field that the schema does not have, or that is set twice.
	RuleUnknownField = "UnknownField"
	// RuleWarning is that of a warning.
	RuleWarning = "Warning"
)

// Finding is one error or warning.
type Finding struct {
	File string `json:"file"`
	// Line is counted from 1.
	Line     int      `json:"line"`
	Severity Severity `json:"severity"`
	// Rule is the type of an error of admission, such as FieldValueInvalid, or one of the
	// constants above.
	Rule      string `json:"rule"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	// Field is the path of the field, empty if the finding is about the whole object.
	Field string `json:"field,omitempty"`
	// Message is what is wrong with the field.
	Message string `json:"message"`
}

// Text returns the field and the message.
func (f *Finding) Text() string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// Check returns the findings in documents, and the number of those that are of the five
// kinds. Documents of other kinds have no findings. The namespace is that of objects that have
// none, and the validation is Strict, Warn or Ignore, as kubectl's flag --validate.
func Check(docs []manifest.Document, namespace, validation string) (found []Finding, checked int) {
	for i := range docs {
		c := checker{doc: &docs[i], namespace: namespace, validation: validation}
		if c.check() {
			checked++
		}
		found = append(found, c.found...)
	}
	return found, checked
}

// checker collects the findings in one document.
type checker struct {
	doc                   *manifest.Document
	namespace, validation string
	found                 []Finding
}

// check reports whether the document is of one of the five kinds.
func (c *checker) check() (ours bool) {
	if broken := c.doc.Err; broken != nil {
		c.add(c.doc.Line, Finding{Severity: Error, Rule: RuleSyntax, Message: broken.Error()})
		return false
	}
	kind := kinds.Of(c.doc.GVK.GroupKind())
	switch {
	case kind != nil && kind.GVK == c.doc.GVK:
		c.create(kind)
		return true
	case kind != nil || kinds.Ours(c.doc.GVK.GroupKind()):
		c.add(c.doc.LineOf("apiVersion"), Finding{Severity: Error, Rule: RuleUnknownKind, Message: unknownKind(c.doc.GVK)})
		return true
	}
	return false
}

// unknownKind returns the words of kubectl for a kind that the cluster does not have, and the
// way out.
func unknownKind(gvk schema.GroupVersionKind) string {
	for _, kind := range kinds.All {
		switch {
		case gvk.Group == "" && kind.GVK.Kind == gvk.Kind, kind.Is(gvk.GroupKind()):
			return fmt.Sprintf("no matches for kind %q in version %q; set apiVersion: %s", gvk.Kind, gvk.GroupVersion(), kind.GVK.GroupVersion())
		case kind.GVK.Group == gvk.Group:
			return fmt.Sprintf("no matches for kind %q in version %q; set kind: %s", gvk.Kind, gvk.GroupVersion(), kind.GVK.Kind)
		}
	}
	return fmt.Sprintf("no matches for kind %q in version %q", gvk.Kind, gvk.GroupVersion())
}

func (c *checker) create(kind *kinds.Kind) {
	resp := create.Dry(kind, create.Request{
		Body: c.doc.Data, YAML: c.doc.YAML, Namespace: cmp.Or(c.doc.Namespace, c.namespace), Validation: c.validation,
	})
	for _, text := range resp.Warnings {
		severity := Warning
		if announcement.MatchString(text) {
			severity = Note
		}
		c.text(text, severity, RuleWarning)
	}
	for _, text := range resp.Strict {
		c.text(text, Error, RuleUnknownField)
	}
	for _, err := range resp.Invalid {
		f := Finding{Severity: Error, Rule: string(err.Type), Field: err.Field, Message: err.ErrorBody()}
		if f.Field == "<nil>" { // It is about the object as a whole.
			f.Field = ""
		}
		c.add(c.doc.LineOf(f.Field), f)
	}
}

var (
	// announcement matches the warnings that every Eru has.
	announcement = regexp.MustCompile(`^spec\.(schedule: the next restarts are at|enabled is false: it would run at) `)
	unknownField = regexp.MustCompile(`^(?:unknown|duplicate) field "(.*)"$`)
	yamlLine     = regexp.MustCompile(`^line (\d+): `)
)

// text adds a finding that the server would send as a text, which names a line or a field.
func (c *checker) text(text string, severity Severity, rule string) {
	f := Finding{Severity: severity, Rule: rule, Message: text}
	if found := yamlLine.FindStringSubmatch(text); found != nil {
		n, _ := strconv.Atoi(found[1]) // The expression matches digits only.
		f.Message = strings.TrimPrefix(text, found[0])
		c.add(c.doc.Shifted(n), f)
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
	f.Kind, f.Namespace, f.Name = c.doc.GVK.Kind, c.doc.Namespace, c.doc.Name
	c.found = append(c.found, f)
}

// Count returns the number of errors and of warnings.
func Count(found []Finding) (errors, warnings int) {
	for _, f := range found {
		if f.Severity == Error {
			errors++
		}
		if f.Severity == Warning {
			warnings++
		}
	}
	return errors, warnings
}
