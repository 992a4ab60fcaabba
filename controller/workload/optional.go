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
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/schedules"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// optionalChildren are the children of the blocks of a spec (children.Blocks).
type optionalChildren struct {
	// object is what the blocks are made of; nil for a kind without blocks, and if the spec leaves
	// that open.
	object *children.Object
	// children are those that watch has found to be desired or to be looked for, and whose
	// informers run.
	children []blockChild
	// messages say which of them cannot be made, or what their status says.
	messages []string
	// starting is whether an informer has begun to list its objects. What the status of the owner
	// says of the children is not changed until it has them, a few milliseconds later as a rule.
	starting bool
	// retry is whether an informer could not start for a reason that may pass by itself.
	retry bool
}

// whileStarting is after which time an owner is reconciled again while an informer starts, and
// afterFailure if it could not start.
const whileStarting, afterFailure = 200 * time.Millisecond, 15 * time.Second

type blockChild struct {
	*children.Block
	*apply.Child
}

// watch sets the children, and starts the informers of those that are desired. The other ones are
// looked for, to delete them, only if an informer runs already. It sends no request, and waits for
// nothing.
func (s *optionalChildren) watch(ctx context.Context, w *watches.Watches) {
	if s.object == nil {
		return
	}
	for _, block := range children.Blocks {
		desired := block.Desired(s.object)
		if desired == nil && !w.Runs(block) || desired != nil && !s.runs(w.Ensure(ctx, block)) {
			continue
		}
		child := &apply.Child{Desired: desired, Live: block.New(), Optional: true, Access: w.Access(block)}
		s.children = append(s.children, blockChild{block, child})
	}
}

// runs reports whether an informer runs, by the error of Watches.Ensure.
func (s *optionalChildren) runs(err error) bool {
	if errors.Is(err, watches.ErrStarting) {
		s.starting = true
	} else if err != nil {
		s.messages = append(s.messages, err.Error())
		s.retry = s.retry || !watches.IsUnavailable(err)
	}
	return err == nil
}

// competingAutoscaler adds a note on an autoscaler that scales the owner, too. It is found in the
// cache.
func (s *optionalChildren) competingAutoscaler(ctx context.Context, c client.Reader, owner client.Object) error {
	if s.object == nil || s.object.Autoscaling == nil {
		return nil
	}
	all, err := schedules.Autoscalers(ctx, c, owner, s.object.Owner.GroupKind())
	for i := range all {
		if controller := metav1.GetControllerOfNoCopy(&all[i]); !metav1.IsControlledBy(&all[i], owner) && !s.object.OwnsAutoscaler(controller) {
			s.messages = append(s.messages, fmt.Sprintf("HorizontalPodAutoscaler %q scales it as well; delete it or the ScaledObject that it is of, or remove spec.autoscaling",
				all[i].Name))
			break
		}
	}
	return err
}

// all returns the children that may be read and written.
func (s *optionalChildren) all() []*apply.Child {
	var out []*apply.Child
	for i := range s.children {
		out = append(out, s.children[i].Child)
	}
	return out
}

// message returns what the message of Ready says of the children.
func (s *optionalChildren) message() string {
	notes := slices.Clone(s.messages)
	for i := range s.children {
		if child := &s.children[i]; child.Report != nil && child.Child.Desired != nil && child.Exists() {
			if note := child.Report(child.Live); note != "" {
				notes = append(notes, note)
			}
		}
		if child := &s.children[i]; child.Note != nil && child.Child.Desired != nil {
			if note := child.Note(s.object); note != "" {
				notes = append(notes, note)
			}
		}
	}
	return strings.Join(notes, "; ")
}

// status sets what the status of the owner has of the children. It leaves it alone if the spec
// leaves open what they have to be.
func (s *optionalChildren) status(into *modelv1.WorkloadStatus) {
	if s.object == nil {
		return
	}
	if s.starting {
		return
	}
	into.URL = ""
	for i := range s.children {
		if child := &s.children[i]; child.Status != nil && child.Child.Desired != nil && child.Exists() {
			child.Status(s.object, child.Live, into)
		}
	}
}

// requeueAfter returns after which time to look for a kind that is not available, 0 for never. An
// informer can stop without an event, so an object with blocks is looked at in any case, which
// costs no request.
func (s *optionalChildren) requeueAfter() time.Duration {
	if s.retry {
		return afterFailure
	}
	if len(s.messages) > 0 || slices.ContainsFunc(s.children, func(c blockChild) bool { return c.Child.Desired != nil }) {
		return trigger.Longest
	}
	return 0
}
