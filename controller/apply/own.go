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

// Own returns, of a child in the API server, what our field manager owns in it, which is what was
// written last; nil if status does not say so, because another client has changed it. After a plain
// create, these are the API server's defaults as well.
func (w Writer) Own(ctx context.Context, owner *Owner, child *Child) (client.Object, error) {
	live := kinds.NewOf(child.Live)
	if err := get(ctx, w.of(child).Live, owner, live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if stored := owner.recorded(kinds.KindOf(live)).Stored; stored == "" || stored != cache.Stored(live) {
		return nil, nil
	}
	whole, err := toTyped(live)
	if err != nil {
		return nil, fmt.Errorf("reading what is owned of %s %q: %w", kinds.KindOf(live), live.GetName(), err)
	}
	fields, _ := whole.ExtractItems(cache.OwnedFields(live).Leaves(), typed.WithAppendKeyFields()).AsValue().Unstructured().(map[string]any)
	own := kinds.NewOf(live)
	return own, runtime.DefaultUnstructuredConverter.FromUnstructured(fields, own)
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
