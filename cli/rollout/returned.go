// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Failed returns why the rollout of the spec of a stored object has failed, so that its children are
// those of the last complete one; "" if they are those of the spec. It decides as the controller does.
func Failed(kind *kinds.Kind, obj *unstructured.Unstructured) (why string, err error) {
	owner := kind.New()
	if err := create.Into(obj, owner); err != nil {
		return "", err
	}
	var spec any
	var on modelv1.OnFailedRollout
	var into *modelv1.RolloutStatus
	switch o := owner.(type) {
	case *modelv1.ModelBox:
		spec, on, into = &o.Spec, o.Spec.OnFailedRollout, o.Status.Rollout
	case *appv1.App:
		spec, on, into = &o.Spec, o.Spec.OnFailedRollout, o.Status.Rollout
	}
	if into == nil || on != modelv1.OnFailedRolloutReturn {
		return "", nil
	}
	if _, hash, err := workload.RolledOut(spec); err != nil || into.Present != hash {
		return "", err
	}
	return into.Failed, nil
}

// LastSpec returns the part of the spec of the last complete rollout of an object that a return
// restores. It is an error if the record of it is gone, or has another content.
func LastSpec(ctx context.Context, c client.Reader, obj *unstructured.Unstructured) ([]byte, error) {
	hash, _, _ := unstructured.NestedString(obj.Object, "status", "rollout", "complete") // The schema knows its type.
	record := &appsv1.ControllerRevision{}
	key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: workload.RecordName(obj.GetName(), hash)}
	if err := c.Get(ctx, key, record); err != nil {
		return nil, fmt.Errorf("reading the record of the last complete rollout: %w", err)
	}
	data, have, err := workload.Record(record.Data)
	if err != nil || have != hash {
		return nil, fmt.Errorf("ControllerRevision %q has not the content that status.rollout.complete says", key.Name)
	}
	return data, nil
}

// Restore returns a copy of an object with that part in its spec.
func Restore(obj *unstructured.Unstructured, last []byte) (*unstructured.Unstructured, error) {
	restored := obj.DeepCopy()
	spec, _ := restored.Object["spec"].(map[string]any) // The schema requires it.
	if err := workload.Return(&spec, last); err != nil {
		return nil, err
	}
	restored.Object["spec"] = spec
	return restored, nil
}
