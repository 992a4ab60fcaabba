// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/limit"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Owner is the object that controls children, with what its status says of them.
type Owner struct {
	client.Object
	// Ready is whether status says that its current generation is ready.
	Ready bool
	// Children are status.children, which Write changes.
	Children []modelv1.ChildStatus
	// Paused prevents every write.
	Paused bool
	// Limit is what the writes count for.
	Limit *limit.Owner
}

// recorded returns what status says of the child of a kind; the zero value is nothing.
func (o *Owner) recorded(kind string) modelv1.ChildStatus {
	i := slices.IndexFunc(o.Children, func(c modelv1.ChildStatus) bool { return c.Kind == kind })
	if i < 0 {
		return modelv1.ChildStatus{}
	}
	return o.Children[i]
}

// record replaces what status says of the child of a kind. The list is not changed in place: it may
// be the one of a stored object.
func (o *Owner) record(child modelv1.ChildStatus) {
	o.forget(child.Kind)
	o.Children = append(o.Children, child)
	slices.SortFunc(o.Children, func(a, b modelv1.ChildStatus) int { return strings.Compare(a.Kind, b.Kind) })
}

func (o *Owner) forget(kind string) {
	o.Children = slices.DeleteFunc(slices.Clone(o.Children), func(c modelv1.ChildStatus) bool { return c.Kind == kind })
}

// lost reports whether status says nothing of a child that exists, although the owner is ready: it
// was written by an earlier version, restored, or stored under a CRD without the field.
func (o *Owner) lost(recorded modelv1.ChildStatus) bool { return recorded.Desired == "" && o.Ready }

// isSettled reports whether a child has its desired state, and nothing is to be requested for it.
func (c *Child) isSettled(recorded modelv1.ChildStatus, desired string) bool {
	return c.found && recorded.Desired == desired && recorded.Stored != "" && recorded.Stored == cache.Stored(c.Live)
}

// hashOf returns the hash of a desired state. It must stay the same in all versions of the
// controller: another one would write all children again after an upgrade.
func hashOf(desired client.Object) (string, error) {
	encoder, ok := desired.(marshaler)
	if !ok {
		encoder = untyped{desired}
	}
	data, err := encoder.Marshal()
	if err != nil {
		return "", fmt.Errorf("hashing %s %q: %w", kinds.KindOf(desired), desired.GetName(), err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16]), nil
}

// Hash returns a short hash of an object in protobuf, which encodes equal objects equally. It must
// stay the same in all versions of the controller, because status.fetcher has it.
func Hash(object marshaler) (string, error) {
	data, err := object.Marshal()
	sum := fnv.New64a()
	_, _ = sum.Write(data) // A hash returns no error.
	return fmt.Sprintf("%016x", sum.Sum64()), err
}

type marshaler interface{ Marshal() ([]byte, error) }

// untyped is the encoding of an object of a kind that has no Go type here: its JSON, with sorted
// keys.
type untyped struct{ client.Object }

func (u untyped) Marshal() ([]byte, error) { return json.Marshal(u.Object) }
