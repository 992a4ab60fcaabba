// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/modelbox-operator/modelbox-operator/api"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
)

// ApplyChild applies a desired child as the operator does, and returns the answer. The plan, and the
// adoption, send it as a dry run: the API server knows its own defaults, and what the operator owns.
func ApplyChild(ctx context.Context, c client.Client, desired, live client.Object, options ...client.PatchOption) (client.Object, error) {
	configuration, err := domain.ApplyConfiguration(desired)
	if err != nil {
		return nil, err
	}
	return patchChild(ctx, c, live, types.ApplyPatchType, configuration, append(options, client.ForceOwnership)...)
}

// patchChild returns the answer to a patch of a live child: decoded into an empty object, because
// one with values would keep what the answer does not have.
func patchChild(ctx context.Context, c client.Client, live client.Object, patchType types.PatchType, patch []byte, options ...client.PatchOption) (client.Object, error) {
	answer := domain.NewOf(live)
	answer.SetNamespace(live.GetNamespace())
	answer.SetName(live.GetName())
	err := c.Patch(ctx, answer, client.RawPatch(patchType, patch), append(options, client.FieldOwner(api.FieldManager))...)
	answer.GetObjectKind().SetGroupVersionKind(live.GetObjectKind().GroupVersionKind())
	return answer, err
}

// written asks the API server what it would store of a child that the operator creates, or applies.
// A new one is returned with Kubernetes' defaults alone: the addresses and ports of the dry run are
// given to others afterwards.
func (p *Planner) written(ctx context.Context, desired, live client.Object) (client.Object, error) {
	if live == nil {
		sent := desired.DeepCopyObject().(client.Object)
		return withDefaults(desired), p.Client.Create(ctx, sent, client.DryRunAll, client.FieldOwner(api.FieldManager))
	}
	created, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(api.FieldManager), api.FieldManager)
	if err != nil {
		return nil, err
	}
	var after client.Object
	if created == nil {
		after, err = ApplyChild(ctx, p.Client, desired, live, client.DryRunAll)
	} else {
		after, err = p.applyFirst(ctx, desired, live)
	}
	if service, ok := after.(*corev1.Service); ok && err == nil {
		removeNewNodePorts(service, desired.(*corev1.Service), live.(*corev1.Service))
	}
	return after, err
}

// applyFirst is the first apply of a child that the operator has created. Before it, the operator
// makes the fields of its creation those of an apply, and no dry run follows another one: so the
// apply is made in memory, and the API server is asked for its result.
func (p *Planner) applyFirst(ctx context.Context, desired, live client.Object) (client.Object, error) {
	upgraded := live.DeepCopyObject().(client.Object)
	if err := csaupgrade.UpgradeManagedFields(upgraded, sets.New(api.FieldManager), api.FieldManager); err != nil {
		return nil, err
	}
	memory := fake.NewClientBuilder().WithScheme(p.Client.Scheme()).WithReturnManagedFields().WithObjects(upgraded).Build()
	after, err := ApplyChild(ctx, memory, desired, upgraded)
	if err != nil {
		return nil, err
	}
	after.SetManagedFields(live.GetManagedFields())
	after.SetResourceVersion(live.GetResourceVersion())
	patch, err := client.MergeFrom(live).Data(after)
	if err != nil {
		return nil, err
	}
	return patchChild(ctx, p.Client, live, types.MergePatchType, patch, client.DryRunAll)
}

// removeNewNodePorts removes the ports that the API server has chosen for the dry run.
func removeNewNodePorts(after, desired, live *corev1.Service) {
	for i := range after.Spec.Ports {
		port := &after.Spec.Ports[i].NodePort
		if !slices.ContainsFunc(slices.Concat(desired.Spec.Ports, live.Spec.Ports), func(p corev1.ServicePort) bool { return p.NodePort == *port }) {
			*port = 0
		}
	}
}
