// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// document returns the edits that pin the models of a document, and whether all are pinned with
// them.
func (o *pinOptions) document(ctx context.Context, doc *manifest.Document, data []byte) (edits []manifest.Edit, pinned bool) {
	box := &modelv1.ModelBox{}
	kind, unknown := kinds.Match(doc.Object.GroupVersionKind())
	if doc.Err == nil && unknown == nil && kind != kinds.ModelBox() {
		return nil, true
	}
	if err := cmp.Or(doc.Err, unknown, create.Into(doc.Object, box)); err != nil {
		fmt.Fprintf(o.ErrOut, "%s:%d: %v\n", doc.File, doc.Line, err)
		return nil, false
	}
	pinned = true
	one := func(path string, m *modelv1.Model) {
		more, err := o.model(ctx, doc, data, path, m)
		if err != nil {
			fmt.Fprintf(o.ErrOut, "%s:%d: %s: %v\n", doc.File, doc.LineOf(path), path, err)
		}
		edits, pinned = append(edits, more...), pinned && err == nil
	}
	switch m := box.Spec.Model; {
	case m != nil && m.URI != "":
		one("spec.model.uri", m)
	case box.Spec.ModelFileURL != "":
		alias := ptr.Deref(m, modelv1.Model{})
		alias.URI = box.Spec.ModelFileURL
		one("spec.modelFileURL", &alias)
	}
	for i := range box.Spec.Models {
		one(fmt.Sprintf("spec.models[%d].uri", i), &box.Spec.Models[i].Model)
	}
	return edits, pinned
}

// model returns the edits that pin one model.
func (o *pinOptions) model(ctx context.Context, doc *manifest.Document, data []byte, path string, m *modelv1.Model) ([]manifest.Edit, error) {
	fields, err := unpinned(m)
	switch {
	case err != nil || len(fields) == 0:
		return nil, err
	case o.check:
		return nil, fmt.Errorf("is not pinned: %s; run 'modelbox pin -f %s'", strings.Join(fields, ", "), doc.File)
	case !strings.HasSuffix(path, ".uri"):
		return nil, errors.New("is an alias; write it as spec.model.uri")
	}
	fmt.Fprintf(o.ErrOut, "%s:%d: asking for %s\n", doc.File, doc.LineOf(path), m.URI)
	now, err := o.resolve(ctx, *m)
	if err != nil {
		return nil, err
	}
	var changed []manifest.Field
	for _, f := range [...]struct{ name, before, now string }{
		{"uri", m.URI, now.URI}, {"sha256", m.SHA256, now.SHA256}, {"sizeLimit", m.SizeLimit.String(), now.SizeLimit.String()},
	} {
		if f.before != f.now {
			changed = append(changed, manifest.Field{Name: f.name, Value: f.now})
		}
	}
	return doc.Set(data, path, changed...)
}

// unpinned returns the fields of a model, as a manifest has it, whose values are to be found out:
// uri if it is a branch, a tag or nothing of hf://, sha256, and sizeLimit. Its error says what
// cannot be found out.
func unpinned(m *modelv1.Model) (fields []string, err error) {
	uri, parsed := models.Parse(m.URI)
	switch scheme, _, _ := strings.Cut(m.URI, "://"); {
	case scheme == models.Hub && parsed != nil && hubURI.MatchString(m.URI):
		fields = []string{"uri"}
	case parsed != nil:
		return nil, parsed
	case !uri.IsFetched():
		return nil, nil
	case m.SHA256 != "" || scheme == models.Hub || uri.Folder:
	case scheme == models.HTTPS:
		fields = []string{"sha256"}
	default:
		return nil, fmt.Errorf("sha256 of %s:// is not found out here; set it to what sha256sum prints for a copy that you trust", scheme)
	}
	if m.SizeLimit == nil && uri.Scheme != models.S3 {
		fields = append(fields, "sizeLimit")
	}
	return fields, nil
}

// resolve returns a model with these fields as they are now.
func (o *pinOptions) resolve(ctx context.Context, m modelv1.Model) (_ *modelv1.Model, err error) {
	var need int64
	if parts := hubURI.FindStringSubmatch(m.URI); parts != nil {
		m.URI, need, err = o.hub(ctx, &m, parts[1], parts[2], parts[3])
	} else {
		need, err = o.file(ctx, &m)
	}
	if limit := fitting(need); err == nil && (m.SizeLimit == nil || m.SizeLimit.Cmp(limit) < 0) {
		m.SizeLimit = &limit
	}
	return &m, err
}

var (
	hubURI = regexp.MustCompile(`^hf://([^/@]+/[^/@]+)(?:@(refs/(?:pr|convert)/[^/]+|[^/]+))?(?:/(.*))?$`)
	commit = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// fitting returns a limit for what is needed, with a tenth and 16 MiB more, rounded up to one of
// eight steps between two powers of two, and to mebibytes.
func fitting(need int64) resource.Quantity {
	need += need/10 + 16<<20
	step := max(int64(1)<<bits.Len64(uint64(need))>>4, 1<<20) //nolint:gosec // It is positive.
	return *resource.NewQuantity((need+step-1)/step*step, resource.BinarySI)
}
