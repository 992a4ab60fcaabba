// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan says what an apply of manifests does. It asks the API server by dry runs: of the
// request of kubectl, which admission answers, and of what the operator then writes to the children
// of the object. What the answers mean for the pods is pure (pods.go).
package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Planner says what an apply does.
type Planner struct {
	// Client reads, and what it writes are dry runs.
	Client client.Client
	// Namespace is that of the manifests that have none.
	Namespace string
	// Now is the instant of the apply. Without it, schedules set no replicas.
	Now time.Time
	Apply

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
	Kind      string   `json:"kind"`
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	Change    string   `json:"change"`
	Restart   *Restart `json:"restart,omitempty"`
	Scale     *Scale   `json:"scale,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
	Notes     []string `json:"notes,omitempty"`
	Diff      string   `json:"diff,omitempty"`

	// Stored is the object as it would be stored, and Children are those that exist then.
	Stored   *unstructured.Unstructured `json:"-"`
	Children []client.Object            `json:"-"`

	kind *kinds.Kind
	// last is what the children are made of if the rollout of the spec has failed, and kept that this
	// cannot be read.
	last []byte
	kept bool
	// manifest is what the user applies, and before is the stored object, nil if there is none.
	manifest, before *unstructured.Unstructured
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

// check returns the errors of a document, of any kind, that no request can have.
func check(doc *manifest.Document) error {
	if err := errors.Join(append(doc.Duplicates, doc.Err)...); err != nil {
		return err
	}
	_, err := kinds.Match(doc.Object.GroupVersionKind())
	return err
}

func (p *Planner) object(ctx context.Context, o *Object) error {
	before, err := p.read(ctx, client.ObjectKeyFromObject(o.manifest), o.kind.Unstructured())
	if err != nil {
		return err
	}
	o.before, _ = before.(*unstructured.Unstructured) // Nil if there is none.
	if o.Stored, err = p.ask(ctx, p.Client, o); err != nil {
		return err
	}
	if err := p.recall(ctx, o); err != nil {
		return err
	}
	frozen, reconciled := p.freeze(ctx, o.Namespace), o.Stored.DeepCopy()
	if frozen == "" && !p.Now.IsZero() {
		render.Schedule(reconciled, p.Now)
	}
	owner, desired, err := o.build(reconciled)
	if err != nil {
		return err
	}
	if err := p.conflicts(ctx, o, o.kind.WorkloadOf(owner)); err != nil {
		return err
	}
	children, err := p.children(ctx, o, owner, desired)
	if err != nil {
		return err
	}
	if p.count(ctx, o, children); o.Restart != nil {
		o.Restart.StartsAt = o.opens(p.Now)
	}
	if o.Restart != nil && frozen != "" {
		o.Notes = append(o.Notes, frozen+": the API server refuses a change of the pods by users that may not override it")
	}
	return o.compare(children)
}

// build returns a stored object as its controller reads it, and the children that the operator
// builds of it.
func (o *Object) build(stored *unstructured.Unstructured) (owner client.Object, children []client.Object, err error) {
	if owner, err = o.decode(stored); err != nil {
		return nil, nil, err
	}
	if o.before == nil {
		owner.SetUID(render.NoUID) // Each dry run of a creation has another one.
	}
	if o.kind.SetStored(owner); !o.kind.HasPods() {
		return owner, nil, nil
	}
	fetcher := render.Fetcher
	if box, ok := owner.(*modelv1.ModelBox); ok && box.Status.Fetcher != nil { // The controller keeps what its status records.
		fetcher = models.Fetcher{Image: box.Status.Fetcher.Image, Mirrors: box.Status.Fetcher.Mirrors}
	}
	children, err = o.kind.Children(owner, fetcher)
	return owner, children, err
}

// count sets the children, and what happens to their pods.
func (p *Planner) count(ctx context.Context, o *Object, children []child) {
	for _, c := range children {
		if c.after != nil {
			o.Children = append(o.Children, c.after)
		}
		restart, scale := c.pods()
		if scale != nil {
			o.Scale = scale
		}
		if restart == nil {
			continue
		}
		o.Restart, restart.Fields = restart, p.causes(ctx, o)
		d, ok := c.after.(*appsv1.Deployment)
		if !ok {
			continue
		}
		o.Notes = append(o.Notes, ClaimRisks(ctx, p.Client, d)...)
		if d.Spec.Paused {
			o.Notes = append(o.Notes, "the Deployment is paused: no pod restarts before kubectl rollout resume")
		}
	}
}

// scale returns the Deployment of a UnitedDeployment.
func (p *Planner) scale(ctx context.Context, o *Object, ud *extensionv1.UnitedDeployment) ([]child, error) {
	before, err := p.read(ctx, client.ObjectKey{Namespace: ud.Namespace, Name: ud.Spec.DeploymentName}, &appsv1.Deployment{})
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
	if o.Change = Created; o.before != nil {
		self.before, o.Change = o.before, Unchanged
	}
	for _, c := range append([]child{self}, children...) {
		known := cmp.Or(c.after, c.before)
		text, err := render.Diff(domain.KindOf(known)+"/"+known.GetName(), c.before, c.after)
		if err != nil {
			return err
		}
		o.Diff += text
	}
	if o.Change == Unchanged && o.Diff != "" {
		o.Change = Configured
	}
	return nil
}
