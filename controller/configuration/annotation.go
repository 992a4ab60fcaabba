// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration tells what data the ConfigMaps and Secrets have that pod templates refer to, so that a
// change of the data becomes a change of the pod template: a rollout with a history. It watches their
// metadata alone, and only once an object asks (spec.restartOnChange), and reads the data of one when it has changed.
package configuration

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/modelbox-operator/modelbox-operator/kinds/podtemplate"
)

// Digests are the SHA-256 of the data of ConfigMaps and Secrets. One that does not exist, or may not be read, is missing.
type Digests map[podtemplate.Reference][sha256.Size]byte

// Annotation returns the value of api.AnnotationConfiguration for the references of a pod template, a line for each: its
// kind, its name, and 16 hexadecimal digits of the HMAC-SHA256 of its digest, with the uid of the owner as key. live is the value
// that the pod template has now. A reference without a digest keeps its line in live; one that has no line there either has a
// line without a hash, so that a ConfigMap which does not exist is no reason for a rollout, and its creation is
// one. With hold every reference keeps its line. It is pure.
func (d Digests) Annotation(uid types.UID, refs []podtemplate.Reference, live string, hold bool) string {
	before := map[string]string{}
	for line := range strings.Lines(live) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
		before[name] = hash
	}
	var lines []string
	for _, ref := range refs {
		hash, known := before[ref.String()]
		if digest, ok := d[ref]; ok && (!known || !hold) {
			hash = keyed(uid, digest)
		}
		lines = append(lines, strings.TrimSpace(ref.String()+" "+hash))
	}
	return strings.Join(lines, "\n")
}

func keyed(uid types.UID, digest [sha256.Size]byte) string {
	mac := hmac.New(sha256.New, []byte(uid))
	_, _ = mac.Write(digest[:]) // A hash returns no error.
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// Changed returns the references whose line differs between two values.
func Changed(a, b string) (out []string) {
	before := slices.Collect(strings.Lines(a + "\n"))
	for line := range strings.Lines(b + "\n") {
		if !slices.Contains(before, line) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			out = append(out, name)
		}
	}
	return out
}

// digestOf returns the SHA-256 of data, which does not depend on its order: each key and each value with its length in front.
func digestOf(data map[string][]byte) (out [sha256.Size]byte) {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		for _, part := range [][]byte{[]byte(key), data[key]} {
			_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			_, _ = sum.Write(part)
		}
	}
	sum.Sum(out[:0])
	return out
}
