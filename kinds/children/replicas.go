// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
)

// WarnReplicas returns a warning on a number of replicas beside a field that sets it later, if a
// manifest has the number, or it differs from the stored one; nil is 1, which a new object has. It
// is never refused: the operator, or an autoscaler, stores such a number itself, and what is stored
// can be created again.
func WarnReplicas(path *field.Path, meta *metav1.ObjectMeta, o *Object, stored *int32) []string {
	by := "schedules"
	if o.Autoscaling != nil {
		by = "autoscaling"
	} else if !o.Scheduled {
		return nil
	}
	if o.Replicas == ptr.Deref(stored, 1) && !fieldownership.IsDeclared(meta, "replicas") {
		return nil
	}
	return []string{fmt.Sprintf("%s: spec.%s sets it too, and each apply of this number undoes that; remove it from the manifest", path, by)}
}

// sleeps returns a sentence on an object that its HorizontalPodAutoscaler never starts, empty if
// there is none. KEDA starts from 0.
func (o *Object) sleeps() string {
	if o.Autoscaling == nil || o.asksPrometheus() || o.Replicas > 0 {
		return ""
	}
	return "a HorizontalPodAutoscaler does not start from 0 replicas; set 1 or more, as by kubectl scale"
}

// Replicas is spec.replicas in an update of an object. WarnReplicas warns of one that undoes what
// an autoscaler or a schedule has set.
type Replicas struct {
	Meta *metav1.ObjectMeta
	// Now and Old are whether the object has autoscaling, and had it before. Scheduled is whether
	// it has or had schedules.
	Now, Old, Scheduled bool
	// Sent is spec.replicas of the update, Stored that before; nil is 1.
	Sent, Stored *int32
}

// Keep sets replicas to the stored number if a client leaves it out. The schema has set 1 then: an
// apply of a manifest from which the field was removed, and a replace by one without it, would stop
// all replicas but one, until the next scheduled time.
func (r *Replicas) Keep(replicas **int32) {
	if !r.Now && !r.Old && !r.Scheduled || ptr.Deref(r.Sent, 1) != 1 || ptr.Deref(r.Stored, 1) == 1 {
		return
	}
	if !fieldownership.IsDeclared(r.Meta, "replicas") && !fieldownership.IsPatched(r.Meta, "replicas") {
		*replicas = new(*r.Stored)
	}
}
