// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// accessModes returns those of the claims among documents, by namespace and name.
func accessModes(docs []manifest.Document, namespace string) map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for i := range docs {
		o := docs[i].Object
		if docs[i].Err != nil || o.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim") {
			continue
		}
		in := cmp.Or(o.GetNamespace(), namespace)
		if out[in] == nil {
			out[in] = map[string][]string{}
		}
		out[in][o.GetName()], _, _ = unstructured.NestedStringSlice(o.Object, "spec", "accessModes") // Another type has no modes.
	}
	return out
}

// claims adds what a rolling update does with the claims of a valid object that are among the
// documents.
func (c *checker) claims(kind *kinds.Kind, obj *unstructured.Unstructured) {
	modes := c.modes[cmp.Or(obj.GetNamespace(), c.namespace)]
	if owner := kind.New(); len(modes) > 0 && kind.HasPods() && create.Into(obj, owner) == nil {
		for _, text := range kind.Workload(owner, models.Fetcher{}).ClaimHints(modes) {
			c.text(text, Warning, "Warning")
		}
	}
}
