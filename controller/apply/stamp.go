// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"hash/fnv"

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

// written tells whether the desired state is the one that was written to live last.
func written(desired, live client.Object) bool {
	return sameAnnotation(AnnotationHash, desired, live)
}
