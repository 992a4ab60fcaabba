// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/pack"
)

// AnnotationHash holds, on each child, a hash of what was last asked of it. It
// is how a field that is no longer asked for is noticed: to a plain comparison
// such a field looks like somebody else's.
const AnnotationHash = "model.github.com/desired-hash"

// stamp writes the hash of a desired object into its annotations.
func stamp(desired client.Object) error {
	data, err := pack.Marshal(desired)
	if err != nil {
		return err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data) // A hash never errs.
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationHash] = fmt.Sprintf("%016x", sum.Sum64())
	desired.SetAnnotations(annotations)
	return nil
}

// Repair says that a child had been right and was made right again.
type Repair struct {
	// Kind and Name are those of the child.
	Kind, Name string
	// Field is the path of the first field that differed.
	Field string
}

// repaired tells a repair from the change that a changed owner asks for.
func repaired(child *Child, field string) *Repair {
	asked := child.Desired.GetAnnotations()[AnnotationHash]
	if child.Live.GetAnnotations()[AnnotationHash] != asked {
		return nil
	}
	return &Repair{Kind: kindOf(child.Live), Name: child.Name, Field: field}
}

// Announce tells, by an event on the owner, what was mended.
func Announce(recorder events.EventRecorder, owner client.Object, repairs []Repair) {
	for _, repair := range repairs {
		recorder.Eventf(owner, nil, corev1.EventTypeNormal, "Repaired", "Apply",
			"%s %q: %s was changed by somebody else and is as this object asks again", repair.Kind, repair.Name, repair.Field)
	}
}
