// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/kinds/around"
)

// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete

// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete

// surroundings are the children of the blocks of a spec (around.Blocks).
type surroundings struct {
	// object is what the blocks are made of; nil for a kind without blocks, and if the spec leaves that open.
	object *around.Object
	// children are those that watch has found to be desired or to be looked for, and whose informers run.
	children []blockChild
	// notes say which of them cannot be made, or what their status says.
	notes []string
}

type blockChild struct {
	*around.Block
	*apply.Child
}

// around returns what the blocks of the spec are made of. Their children have all labels, also where those of an
// adopted object have none.
func (w *Workload) around() *around.Object {
	o := *w.Around
	o.Owner, o.Selector, o.Meta = w.OwnerKind, w.Selector(), w.ObjectMeta()
	o.Meta.Labels = labels.Set{api.LabelName: w.AppName, api.LabelInstance: w.Instance, api.LabelManagedBy: api.ManagedBy}
	return &o
}

// watch sets the children, and starts the informers of those that are desired. The other ones are looked for, to delete
// them, only if an informer runs already. It sends no request for an object without blocks.
func (s *surroundings) watch(ctx context.Context, w *watches.Watches) error {
	if s.object == nil {
		return nil
	}
	for _, block := range around.Blocks {
		desired := block.Desired(s.object)
		if desired == nil && !w.Runs(block) {
			continue
		}
		if desired != nil {
			err := w.Ensure(ctx, block)
			if unavailable, ok := errors.AsType[*watches.UnavailableError](err); ok {
				s.notes = append(s.notes, unavailable.Error())
				continue
			}
			if err != nil {
				return err
			}
		}
		s.children = append(s.children, blockChild{block, &apply.Child{Desired: desired, Live: block.New()}})
	}
	return nil
}

// rivals adds a note on an autoscaler that scales the owner, too. It is found in the cache.
func (s *surroundings) rivals(ctx context.Context, c client.Reader, owner client.Object) error {
	if s.object == nil || s.object.Autoscaling == nil {
		return nil
	}
	all, err := schedules.Autoscalers(ctx, c, owner, s.object.Owner.GroupKind())
	for i := range all {
		if controller := metav1.GetControllerOfNoCopy(&all[i]); !metav1.IsControlledBy(&all[i], owner) && !s.object.OwnsAutoscaler(controller) {
			s.notes = append(s.notes, fmt.Sprintf("HorizontalPodAutoscaler %q scales it as well; delete it or the ScaledObject that it is of, or remove spec.autoscaling",
				all[i].Name))
			break
		}
	}
	return err
}

// all returns the children that may be read and written.
func (s *surroundings) all() []*apply.Child {
	var out []*apply.Child
	for i := range s.children {
		out = append(out, s.children[i].Child)
	}
	return out
}

// note returns what the message of Ready says of the children.
func (s *surroundings) note() string {
	notes := slices.Clone(s.notes)
	for i := range s.children {
		if child := &s.children[i]; child.Report != nil && child.Child.Desired != nil && child.Exists() {
			if note := child.Report(child.Live); note != "" {
				notes = append(notes, note)
			}
		}
	}
	return strings.Join(notes, "; ")
}

// status sets what the status of the owner has of the children. It leaves it alone if the spec leaves open what they
// have to be.
func (s *surroundings) status(into *modelv1.WorkloadStatus) {
	if s.object == nil {
		return
	}
	into.URL = ""
	for i := range s.children {
		if child := &s.children[i]; child.Status != nil && child.Child.Desired != nil && child.Exists() {
			child.Status(s.object, child.Live, into)
		}
	}
}

// again returns after which time to look for a kind that is not available, 0 for never. An informer can stop without
// an event, so an object with blocks is looked at in any case, which costs no request.
func (s *surroundings) again() time.Duration {
	if len(s.notes) > 0 || slices.ContainsFunc(s.children, func(c blockChild) bool { return c.Child.Desired != nil }) {
		return trigger.Longest
	}
	return 0
}
