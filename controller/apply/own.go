// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Own returns what our field manager owns in a child as it is in the API server, nil if there is no
// child, and whether that is what was written last, by what status says: another client has changed
// none of it. After a plain create, the API server's defaults are a part of it.
func (w Writer) Own(ctx context.Context, owner *Owner, child *Child) (own client.Object, asWritten bool, err error) {
	live := kinds.NewOf(child.Live)
	if err := get(ctx, w.of(child).Live, owner, live); err != nil {
		return nil, false, client.IgnoreNotFound(err)
	}
	whole, err := toTyped(live)
	if err != nil {
		return nil, false, fmt.Errorf("reading what is owned of %s %q: %w", kinds.KindOf(live), live.GetName(), err)
	}
	fields, _ := whole.ExtractItems(cache.OwnedFields(live).Leaves(), typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	stored := owner.recorded(kinds.KindOf(live)).Stored
	own, asWritten = kinds.NewOf(live), stored != "" && stored == cache.Stored(live)
	return own, asWritten, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, own)
}

// IsDesired reports whether the desired state of a child is the one that was written last, by what
// status says.
func (c *Child) IsDesired(owner *Owner) (bool, error) {
	hash, err := hashOf(c.Desired)
	return err == nil && hash == owner.recorded(kinds.KindOf(c.Live)).Desired, err
}

// Compare reports whether two desired states differ when both have Kubernetes' defaults of a pod
// template, and the paths of the fields in which they do, if their schema can tell.
func Compare(before, after client.Object) (paths []string, differ bool) {
	before, after = defaulted(before), defaulted(after)
	if equality.Semantic.DeepEqual(before, after) {
		return nil, false
	}
	return changed(before, after), true
}
