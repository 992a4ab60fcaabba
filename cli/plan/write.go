// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
func (p *Planner) written(ctx context.Context, desired, live client.Object) (after client.Object, err error) {
	if live == nil {
		after = desired.DeepCopyObject().(client.Object)
		err = p.Client.Create(ctx, after, client.DryRunAll, client.FieldOwner(api.FieldManager))
	} else {
		after, err = p.applied(ctx, desired, live)
	}
	if err != nil {
		return nil, err
	}
	removeAllocated(after, desired, live)
	return after, p.complete(after)
}

// applied asks the API server what it would make of the operator's apply. As the operator does it,
// the whole spec is replaced if the child is invalid with the fields of other managers.
func (p *Planner) applied(ctx context.Context, desired, live client.Object) (client.Object, error) {
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
	if !apierrors.IsInvalid(err) && !apierrors.IsInternalError(err) {
		return after, err
	}
	content, err := domain.Content(desired)
	if err != nil {
		return nil, err
	}
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": content["spec"]}})
	if err != nil {
		return nil, err
	}
	return patchChild(ctx, p.Client, live, types.JSONPatchType, patch, client.DryRunAll)
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

// removeAllocated removes from a Service what the API server has chosen for the dry run: it chooses
// again.
func removeAllocated(after, desired, live client.Object) {
	service, ok := after.(*corev1.Service)
	if !ok {
		return
	}
	known := sets.New[int32]()
	for _, of := range []client.Object{desired, live} {
		if s, ok := of.(*corev1.Service); ok {
			for _, port := range s.Spec.Ports {
				known.Insert(port.NodePort)
			}
		}
	}
	for i := range service.Spec.Ports {
		if port := &service.Spec.Ports[i]; !known.Has(port.NodePort) {
			port.NodePort = 0
		}
	}
	if live == nil && service.Spec.ClusterIP != corev1.ClusterIPNone {
		service.Spec.ClusterIP, service.Spec.ClusterIPs, service.Spec.HealthCheckNodePort = "", nil, 0
	}
}
