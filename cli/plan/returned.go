// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/rollout"
)

// recall reads what the children of an object are made of if the rollout of its spec has failed, and
// says so. The operator leaves them as they are without it.
func (p *Planner) recall(ctx context.Context, o *Object) error {
	why, err := rollout.Failed(o.kind, o.Stored)
	if why == "" {
		return err
	}
	o.Notes = append(o.Notes, fmt.Sprintf("the rollout of this spec has failed (%s), so the pods stay those of the last complete one: change the spec to roll out again", why))
	if o.last, err = rollout.LastSpec(ctx, p.Client, o.Stored); err != nil {
		o.kept, o.Notes = true, append(o.Notes, fmt.Sprintf("its children are not compared: %v", err))
	}
	return nil
}

// decode returns a stored object as its controller reads it: with what its children are made of if the
// rollout of its spec has failed.
func (o *Object) decode(stored *unstructured.Unstructured) (client.Object, error) {
	owner, why := o.kind.New(), ""
	var err error
	if o.last != nil {
		why, err = rollout.Failed(o.kind, stored)
	}
	if err == nil && why != "" {
		stored, err = rollout.Restore(stored, o.last)
	}
	if err != nil {
		return nil, err
	}
	if err := create.Into(stored, owner); err != nil {
		return nil, err
	}
	if box, ok := owner.(*modelv1.ModelBox); ok && why != "" && box.Status.Rollout.Fetcher != nil {
		box.Status.Fetcher = box.Status.Rollout.Fetcher
	}
	return owner, nil
}
