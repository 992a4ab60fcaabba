// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan predicts what an apply of manifests does, and only reads from the cluster. It makes
// the steps of the API server and of the operator in memory: the patch of kubectl, admission, and
// the writes of the operator to the children of an object.
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Planner predicts what an apply does.
type Planner struct {
	// Client is only read from.
	Client client.Client
	// Namespace is that of the manifests that have none.
	Namespace string
	// ReadSizes returns those of the cluster. It is called if a manifest names one, and its error
	// is one of what could not be read.
	ReadSizes func() (modelbox.Sizes, error)
	// Now is the instant of the apply. Without it, schedules set no replicas.
	Now time.Time
	Apply

	sizes     modelbox.Sizes // Nil if they are not known.
	manifests []*unstructured.Unstructured
	frozen    map[string]string  // By namespace: a sentence, "" if it is not.
	actors    map[string][]actor // By namespace.
	hidden    []string
}

// Plan is what an apply does. Hidden is what could not be read, so that it is not considered.
type Plan struct {
	Objects []*Object `json:"objects"`
	Hidden  []string  `json:"hidden,omitempty"`
}

// The changes of an object. It is Configured also if only a child changes.
const (
	Created    = "created"
	Configured = "configured"
	Unchanged  = "unchanged"
)

// Object is what an apply does with an object and its children.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Change    string `json:"change"`
	// Unknown is that the user may not read what has the pods, so that Restart and Scale are not
	// known.
	Unknown   bool     `json:"unknown,omitempty"`
	Restart   *Restart `json:"restart,omitempty"`
	Scale     *Scale   `json:"scale,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Diff      string   `json:"diff,omitempty"`

	// Stored is the object as it would be stored, and Children are those that exist then.
	Stored   *unstructured.Unstructured `json:"-"`
	Children []client.Object            `json:"-"`

	kind *kinds.Kind
	// manifest is what the user applies, before is the stored object (nil if there is none), and
	// patched is what admission gets.
	manifest, before, patched *unstructured.Unstructured
	fetcher                   models.Fetcher
}

// Plan returns what an apply of manifests does. Objects of other kinds have no plan, but they count
// for conflicts. The error names each object that the API server would refuse.
func (p *Planner) Plan(ctx context.Context, docs []manifest.Document) (*Plan, error) {
	plan, errs := &Plan{}, []error(nil)
	p.actors, p.frozen = map[string][]actor{}, map[string]string{}
	for i := range docs {
		if err := check(&docs[i]); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", docs[i].File, docs[i].Line, err)
		}
		object := docs[i].Object
		object.SetNamespace(cmp.Or(object.GetNamespace(), p.Namespace))
		p.manifests = append(p.manifests, object)
	}
	p.readSizes()
	for i, object := range p.manifests {
		o := &Object{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(), manifest: object, kind: kinds.Of(object.GroupVersionKind().GroupKind())}
		if o.kind == nil {
			continue
		}
		if err := p.object(ctx, o); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s %q: %w", docs[i].File, docs[i].Line, o.Kind, o.Name, err))
		}
		plan.Objects = append(plan.Objects, o)
	}
	plan.Hidden = p.hidden
	return plan, errors.Join(errs...)
}

// check returns the errors of a document, of any kind, that the API server in memory would return
// in other words.
func check(doc *manifest.Document) error {
	if err := errors.Join(append(doc.Duplicates, doc.Err)...); err != nil {
		return err
	}
	kind, err := kinds.Match(doc.Object.GroupVersionKind())
	if kind == nil {
		return err
	}
	unknown, err := create.Unknown(kind, doc.Object)
	return errors.Join(append(unknown, err)...)
}

// readSizes reads the sizes of the cluster if a manifest has one.
func (p *Planner) readSizes() {
	for _, m := range p.manifests {
		size, _, _ := unstructured.NestedString(m.Object, "spec", "resourceType") // Another type is no size.
		if p.ReadSizes == nil || p.sizes != nil || !modelbox.IsSize(modelv1.ResourceType(size)) {
			continue
		}
		var err error
		if p.sizes, err = p.ReadSizes(); err != nil {
			p.hidden = append(p.hidden, fmt.Sprintf("the current values of sizes: %v", err))
			return
		}
	}
}

// freeze returns a sentence about the freeze of a namespace, "" if it is not frozen.
func (p *Planner) freeze(ctx context.Context, namespace string) string {
	text, known := p.frozen[namespace]
	if known {
		return text
	}
	reason, frozen, err := Frozen(ctx, p.Client, namespace)
	if frozen {
		text = fmt.Sprintf("namespace %s is frozen (%s)", namespace, reason)
	}
	if err != nil {
		p.hidden = append(p.hidden, err.Error())
	}
	p.frozen[namespace] = text
	return text
}

func (p *Planner) object(ctx context.Context, o *Object) error {
	if err := p.admit(ctx, o); err != nil {
		return err
	}
	frozen := p.freeze(ctx, o.Namespace)
	owner, err := o.owner(frozen == "" && !p.Now.IsZero(), p.Now)
	if err != nil {
		return err
	}
	children, err := p.reconcile(ctx, o, owner)
	if err == nil {
		err = p.conflicts(ctx, o, o.kind.WorkloadOf(owner))
	}
	if ud, ok := owner.(*extensionv1.UnitedDeployment); ok && err == nil && len(o.Conflicts) == 0 {
		children, err = p.scale(ctx, o, ud)
	}
	if err != nil {
		return err
	}
	o.count(children, p.sizes)
	if o.Restart != nil && frozen != "" {
		o.Notes = append(o.Notes, frozen+": the API server refuses a change of the pods by users that may not override it")
	}
	return o.compare(children)
}

// count sets the children, and what happens to the pods.
func (o *Object) count(children []child, sizes modelbox.Sizes) {
	for _, c := range children {
		if o.pods(c, sizes); c.after != nil {
			o.Children = append(o.Children, c.after)
		}
	}
}

// admit makes the steps of kubectl and of admission.
func (p *Planner) admit(ctx context.Context, o *Object) error {
	o.before = o.kind.Unstructured()
	err := p.Client.Get(ctx, client.ObjectKeyFromObject(o.manifest), o.before)
	switch {
	case apierrors.IsNotFound(err):
		o.before, o.patched = nil, o.manifest
	case err != nil:
		return err
	default:
		if o.patched, err = p.patched(ctx, o); err != nil {
			return err
		}
	}
	if o.Stored = o.patched; o.patched == o.before {
		return nil // kubectl sends no request.
	}
	resp := create.Dry(o.kind, create.Request{Object: o.patched, Namespace: o.Namespace, Old: o.before, Sizes: p.sizes})
	o.Stored = resp.Object
	return resp.Err()
}

// owner returns the object as its controller reads it, at an instant, after it has set the replicas
// of schedules if it does.
func (o *Object) owner(scales bool, now time.Time) (client.Object, error) {
	read := o.Stored.DeepCopy()
	read.SetUID(cmp.Or(read.GetUID(), render.NoUID))
	if o.before != nil {
		read.Object["status"] = o.before.Object["status"]
		if !reflect.DeepEqual(o.before.Object["spec"], read.Object["spec"]) {
			read.SetGeneration(read.GetGeneration() + 1)
		}
	}
	if scales {
		render.Schedule(read, now)
	}
	owner := o.kind.New()
	if err := create.Into(read, owner); err != nil {
		return nil, err
	}
	o.kind.SetStored(owner)
	o.fetcher = render.Fetcher
	if box, ok := owner.(*modelv1.ModelBox); ok && box.Status.Fetcher != nil { // The controller keeps what its status records.
		o.fetcher = models.Fetcher{Image: box.Status.Fetcher.Image, Mirrors: box.Status.Fetcher.Mirrors}
	}
	return owner, nil
}

// scale returns the Deployment of a UnitedDeployment.
func (p *Planner) scale(ctx context.Context, o *Object, ud *extensionv1.UnitedDeployment) ([]child, error) {
	before, err := read(ctx, p.Client, client.ObjectKey{Namespace: ud.Namespace, Name: ud.Spec.DeploymentName}, &appsv1.Deployment{})
	if before == nil {
		o.Notes = append(o.Notes, fmt.Sprintf("there is no Deployment %q in this namespace", ud.Spec.DeploymentName))
		return nil, err
	}
	after := before.DeepCopyObject().(*appsv1.Deployment)
	after.Spec.Replicas = ud.Spec.Replicas
	return []child{{before: before, after: after}}, err
}

// compare sets the differences and the change of an object.
func (o *Object) compare(children []child) error {
	self := child{after: o.Stored}
	if o.before != nil {
		self.before = o.before
	}
	for _, c := range append([]child{self}, children...) {
		known := cmp.Or(c.after, c.before)
		text, err := render.Diff(known.GetObjectKind().GroupVersionKind().Kind+"/"+known.GetName(), c.before, c.after)
		if err != nil {
			return err
		}
		o.Diff += text
	}
	switch {
	case o.before == nil:
		o.Change = Created
	case o.Diff == "":
		o.Change = Unchanged
	default:
		o.Change = Configured
	}
	return nil
}
