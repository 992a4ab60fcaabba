// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

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

	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// Digest is the SHA-256 of the data of a ConfigMap or a Secret.
type Digest struct {
	Sum [sha256.Size]byte
	// First is whether this process has known no other data of the object.
	First bool
}

// Digests are those of the references of an object. One that does not exist, may not be read, or
// changed a moment ago is missing.
type Digests map[workload.Reference]Digest

// unreadable is in the place of the hash of a reference that could not be read when the pod
// template was written.
const unreadable = "?"

// Annotation returns the value of api.AnnotationConfiguration for the references of a pod template,
// a line for each: its kind, its name, and 16 hexadecimal digits of the HMAC-SHA256 of its digest,
// with the uid of the owner as key. live is the value that the pod template has now. A reference
// without a digest keeps its line in live; one that has no line there either has a line without a
// hash, so that a ConfigMap which does not exist is no reason for a rollout, and its creation is
// one. A line that says that the reference could not be read changes with the data, and not because
// that is known now: a permission that is given later is no reason for a rollout. It is pure.
func (d Digests) Annotation(uid types.UID, refs []workload.Reference, live string) string {
	before := linesOf(live)
	var lines []string
	for _, ref := range refs {
		hash := before[ref.String()]
		if digest, ok := d[ref]; ok && (hash != unreadable || !digest.First) {
			hash = keyed(uid, digest.Sum)
		}
		lines = append(lines, strings.TrimSpace(ref.String()+" "+hash))
	}
	return strings.Join(lines, "\n")
}

// Anew returns the annotation of a pod template that is written for another reason. The references
// in unread could not be read. It is pure.
func (d Digests) Anew(uid types.UID, refs []workload.Reference, live string, unread []workload.Reference) string {
	before := linesOf(live)
	var lines []string
	for _, ref := range refs {
		hash := before[ref.String()]
		if digest, ok := d[ref]; ok {
			hash = keyed(uid, digest.Sum)
		} else if hash == "" && slices.Contains(unread, ref) {
			hash = unreadable
		}
		lines = append(lines, strings.TrimSpace(ref.String()+" "+hash))
	}
	return strings.Join(lines, "\n")
}

// Missing returns the digests of references that have no line in live. It is pure.
func (d Digests) Missing(live string) Digests {
	lines, out := linesOf(live), maps.Clone(d)
	maps.DeleteFunc(out, func(ref workload.Reference, _ Digest) bool {
		_, has := lines[ref.String()]
		return has
	})
	return out
}

// linesOf returns the hashes in an annotation by their references.
func linesOf(annotation string) map[string]string {
	lines := map[string]string{}
	for line := range strings.Lines(annotation) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines[name] = hash
	}
	return lines
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

// digestOf returns the SHA-256 of data, which does not depend on its order: each key and each value
// with its length in front.
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
