// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"hash/fnv"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// AnnotationHash holds, on each child, the hash of the desired state that was written last.
// A field that is no longer desired is noticed by it: a comparison alone cannot tell such a
// field from one that another field manager set.
const AnnotationHash = "model.github.com/desired-hash"

// setHash writes the hash of a desired object into its annotations.
func setHash(desired client.Object) error {
	hash, err := hashOf(desired)
	if err != nil {
		return err
	}
	annotations := desired.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationHash] = hash
	desired.SetAnnotations(annotations)
	return nil
}

// hashOf returns the hash of an object in protobuf, which encodes equal objects equally. The
// hash of an object must stay the same in all versions of the controller: another one would
// write all children again after an upgrade.
func hashOf(desired client.Object) (string, error) {
	encoder, ok := desired.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return "", fmt.Errorf("%T has no encoding in protobuf", desired)
	}
	data, err := encoder.Marshal()
	if err != nil {
		return "", err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(data) // A hash returns no error.
	return fmt.Sprintf("%016x", sum.Sum64()), nil
}

// hashMatches reports whether the desired state is the one that was written to live last.
func hashMatches(desired, live client.Object) bool {
	return sameAnnotation(AnnotationHash, desired, live)
}
