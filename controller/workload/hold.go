// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/windows"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// held is what waits of the desired state.
type held struct {
	// template is that the pods keep their present template.
	template bool
	// ports is that the pods keep other ports than the spec has, so that the Service and the optional
	// children, which lead to these, stay as they are.
	ports bool
	// unknown is that the present template is not known, so that the child stays as it is.
	unknown bool
}

// Holds reports whether the pods keep their present template, which is not that of the spec.
func (s *State) Holds() bool { return s.held.template }

// written returns the children that are written.
func (s *State) written() []*apply.Child {
	children := s.all()
	if s.held.ports {
		children = children[:1]
	}
	if s.held.unknown {
		children = children[1:]
	}
	return children
}

// hold makes the present pod template the desired one, if spec.holdChanges makes a changed one wait.
// The present one is that of the record, and without a record what the controller owns in the child:
// then it is recorded, so that what other clients change meanwhile can be undone. A return from a rollout
// that failed does not wait.
func (r *Reconciler) hold(ctx context.Context, s *State) error {
	if s.HoldChanges != modelv1.HoldChangesAll && s.Status.KeptTemplate == "" {
		return nil
	}
	hash, err := apply.Hash(kinds.PodTemplate(s.Pods.Desired))
	if err != nil {
		return err
	}
	s.configured.template = hash
	if changes, err := s.changesPods(hash); err != nil || !changes || s.returned() != "" {
		return err
	}
	w, err := r.untilChange(ctx, s)
	if err != nil || w.reason == "" {
		return err
	}
	return r.keep(ctx, s, w)
}

// changesPods reports whether a desired pod template with a hash may change pods, or a record of it is
// needed no longer.
func (s *State) changesPods(hash string) (bool, error) {
	if s.Status.Template == hash || !s.Pods.Exists() && s.Status.KeptTemplate == "" {
		return false, nil
	}
	if s.Status.Template != "" {
		return true, nil
	}
	same, err := s.Pods.IsDesired(s.owner()) // The field is new in this object.
	return !same, err
}

// untilChange returns what a changed pod template waits for: a window, and if it has waited for one, or
// is to start now, also the end of a freeze, and its turn. A change in a window does not: admission has
// refused it in a frozen namespace, unless the user may override that.
func (r *Reconciler) untilChange(ctx context.Context, s *State) (w wait, err error) {
	startsNow := windows.StartsNow(s.Owner)
	if s.HoldChanges == modelv1.HoldChangesAll && !startsNow {
		if w = closed(s.Windows, r.Clock.Now()); w.reason != "" {
			w.cause += fmt.Sprintf("; to start it now, use modelbox rollout now %s/%s", strings.ToLower(s.OwnerKind.Kind), s.Owner.GetName())
		}
	}
	if w.reason != "" || s.Status.KeptTemplate == "" && !startsNow {
		r.Queue.Remove(r.subject(client.ObjectKeyFromObject(s.Owner)))
		return w, nil
	}
	return r.turn(ctx, s)
}

// keep makes the present pod template the desired one, unless it is that already.
func (r *Reconciler) keep(ctx context.Context, s *State, w wait) error {
	present, recorded, err := r.present(ctx, s)
	if err != nil {
		return err
	}
	desired, what := kinds.PodTemplate(s.Pods.Desired), []string{"spec"}
	switch {
	case present != nil:
		changed, differs := changedFields(s.Pods.Live, present, desired)
		if !differs {
			return nil
		}
		if !recorded && !s.Paused {
			if err := r.record(ctx, s, present); err != nil {
				return err
			}
		}
		s.held = held{template: true, ports: !slices.Equal(portsOf(desired), portsOf(present))}
		if *desired = *present; len(changed) > 0 {
			what = changed[:min(len(changed), 3)]
		}
		if s.Pods.Exists() {
			s.Pods.Expect = append(s.Pods.Expect, apply.Generation(s.Pods.Live.GetGeneration()))
		}
	case s.Pods.Exists():
		s.held = held{template: true, unknown: true}
	default:
		return nil
	}
	s.configured = configured{
		reason: w.reason, waiting: fmt.Sprintf("rollout of changed %s is on hold: %s", strings.Join(what, ", "), w.cause), again: w.again,
		live: s.Status.Configuration,
	}
	return nil
}

// portsOf returns what a Service can lead to in the pods of a template.
func portsOf(template *corev1.PodTemplateSpec) (ports []corev1.ContainerPort) {
	for _, c := range slices.Concat(template.Spec.Containers, template.Spec.InitContainers) {
		for _, p := range c.Ports {
			ports = append(ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort, Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP)})
		}
	}
	return ports
}

// changedFields reports whether a pod template differs from the present one, in more than the
// configuration that it refers to, and the paths of the fields in which it does.
func changedFields(like client.Object, present, changed *corev1.PodTemplateSpec) (paths []string, differs bool) {
	of := func(template *corev1.PodTemplateSpec) client.Object {
		out := kinds.NewOf(like)
		*kinds.PodTemplate(out) = *template.DeepCopy()
		setConfiguration(kinds.PodTemplate(out), "")
		return out
	}
	paths, differs = apply.Compare(of(present), of(changed))
	for i := range paths {
		paths[i] = strings.TrimPrefix(strings.TrimPrefix(paths[i], "spec.template."), "spec.")
	}
	return paths, differs
}

// present returns the pod template that the pods are to have now, and whether there is a record of it:
// the desired one if a write of it has lost its answer, that of the record, or what was written last.
// It is nil if none of them is known, because there is no child, or another client has changed it.
func (r *Reconciler) present(ctx context.Context, s *State) (template *corev1.PodTemplateSpec, recorded bool, err error) {
	own, asWritten, err := r.Writer.Own(ctx, s.owner(), s.Pods)
	if err != nil {
		return nil, false, err
	}
	if own != nil {
		if template = kinds.PodTemplate(own); asWritten && s.Status.KeptTemplate == "" {
			return template, false, nil
		}
		if _, differs := changedFields(own, template, kinds.PodTemplate(s.Pods.Desired)); !differs {
			return template, true, nil
		}
	}
	if s.Status.KeptTemplate != "" {
		if template, err := r.recorded(ctx, s, s.Status.KeptTemplate); err != nil || template != nil {
			return template, true, err
		}
	}
	if asWritten {
		return template, false, nil
	}
	return nil, false, nil
}

// recorded returns the pod template of a record, nil if there is none with that hash.
func (r *Reconciler) recorded(ctx context.Context, s *State, hash string) (*corev1.PodTemplateSpec, error) {
	data, err := r.readRecord(ctx, s.Owner, hash)
	if data == nil {
		return nil, err
	}
	template := &corev1.PodTemplateSpec{}
	return template, json.Unmarshal(data, template)
}

// record stores a pod template in a ControllerRevision of the owner, and its hash in status, before
// anything else is written.
func (r *Reconciler) record(ctx context.Context, s *State, template *corev1.PodTemplateSpec) error {
	data, hash, err := workload.Record(template)
	if err != nil {
		return err
	}
	if err := r.createRecord(ctx, s, hash, data); err != nil {
		return err
	}
	s.Status.KeptTemplate = hash
	return s.Writer.WriteFirst(ctx)
}

// release deletes the record of a pod template that the pods no longer keep.
func (r *Reconciler) release(ctx context.Context, s *State) error {
	if s.Status.KeptTemplate == "" || s.held.template || s.Paused || !s.Pods.Settled() {
		return nil
	}
	if err := r.deleteRecord(ctx, s, s.Status.KeptTemplate); err != nil {
		return err
	}
	s.Status.KeptTemplate = ""
	return nil
}
