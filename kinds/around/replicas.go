// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package around

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/patch"
)

// Replicas is spec.replicas in an update of an object, which may not undo what an autoscaler has set. An update through
// the scale subresource, as an autoscaler sends it, is not judged.
type Replicas struct {
	Meta *metav1.ObjectMeta
	// Now and Old are whether the object has autoscaling, and had it before.
	Now, Old bool
	// Sent is spec.replicas of the update, Stored that before; nil is 1.
	Sent, Stored *int32
}

// Keep sets replicas to the stored number if a client that has autoscaling leaves it out, and records that in ops. The
// schema has set 1 then: a client-side apply of a manifest from which the field was removed would stop all replicas but one.
func (r *Replicas) Keep(replicas **int32, ops *patch.Ops) {
	if r.Now && ptr.Deref(r.Sent, 1) == 1 && ptr.Deref(r.Stored, 1) != 1 && !r.isDeclared() {
		patch.Set(ops, "/spec/replicas", replicas, new(*r.Stored))
	}
}

// Validate returns the error of an update that sets another number, or that begins to use autoscaling while a manifest
// sets the number: the next apply of the manifest would undo what the autoscaler has done.
func (r *Replicas) Validate(path *field.Path) field.ErrorList {
	sent := ptr.Deref(r.Sent, 1)
	if !r.Now || sent == ptr.Deref(r.Stored, 1) && (r.Old || !r.isDeclared()) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, sent,
		"is set by spec.autoscaling, which continues from the current number; remove it from the manifest, or use kubectl scale")}
}

func (r *Replicas) isDeclared() bool {
	owners := fieldownership.Of(r.Meta)
	return owners.IsDeclared("/spec/replicas")
}
