// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	domain "github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/fieldownership"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

func newResize(env Env) *cobra.Command {
	return onTarget(env, &cobra.Command{
		Use:   "resize modelbox/NAME",
		Short: "Apply the current values of its size to a ModelBox",
		Long: `Give a ModelBox all current values of its size, the image of the server included, which another update of its pods leaves as it is.
Its pods are replaced by a rollout if one of their fields changes. What clients have set stays.`,
		Example: `  {} status --sizes sizes.yaml
  {} resize modelbox/qwen`,
	}, func(kind *kinds.Kind) bool { return kind == kinds.ModelBox() }, resize)
}

func resize(ctx context.Context, t *target) error {
	if t.kind != kinds.ModelBox() {
		return usage("%s has no size: only a ModelBox has", t)
	}
	stored := t.kind.Unstructured()
	if err := t.client.Get(ctx, t.key, stored); err != nil {
		return err
	}
	size, _, _ := unstructured.NestedString(stored.Object, "spec", "resourceType")
	if !modelbox.IsSize(modelv1.ResourceType(size)) {
		return fmt.Errorf("%s has no size of the cluster: its resourceType is %q", t, size)
	}
	body, err := resizePatch(stored)
	if err != nil {
		return err
	}
	write := func(options ...client.PatchOption) (*unstructured.Unstructured, error) {
		next := stored.DeepCopy()
		err := t.client.Patch(ctx, next, client.RawPatch(types.MergePatchType, body), append(options, client.FieldOwner(fieldManager))...)
		return next, err
	}
	next, err := write(client.DryRunAll)
	if err == nil && equality.Semantic.DeepEqual(next.Object["spec"], stored.Object["spec"]) {
		fmt.Fprintf(t.Out, "%s has the current values of size %s already\n", t, size)
		return nil
	}
	if err == nil {
		_, err = write()
	}
	if err != nil {
		return fmt.Errorf("resizing %s: %w", t, err)
	}
	fmt.Fprintf(t.Out, "%s resized: %s\n", t, strings.Join(differing(stored, next), ", "))
	return nil
}

// resizePatch returns the merge patch that asks for the current values. Admission is asked only if
// the spec changes, so it removes a field that no client has set, and that admission sets again.
func resizePatch(stored *unstructured.Unstructured) ([]byte, error) {
	set, err := fieldownership.Fields(stored.GetManagedFields()...)
	if err != nil {
		return nil, err
	}
	spec, _, _ := unstructured.NestedMap(stored.Object, "spec")
	for _, name := range slices.Sorted(maps.Keys(spec)) {
		if fieldownership.Has(set, fieldpath.MakePathOrDie("spec", name)) || fieldownership.IsDeclared(stored, name) {
			continue
		}
		return fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"annotations":{%q:"%d"}},"spec":{%q:null}}`,
			stored.GetResourceVersion(), modelv1.ResizeAnnotation, stored.GetGeneration(), name), nil
	}
	return nil, fmt.Errorf("clients have set all fields of %s, so it has no value of its size", stored.GetName())
}

// differing returns the fields of the spec that differ.
func differing(a, b *unstructured.Unstructured) []string {
	before, _, _ := unstructured.NestedMap(a.Object, "spec")
	after, _, _ := unstructured.NestedMap(b.Object, "spec")
	all := maps.Clone(before)
	maps.Copy(all, after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool {
		return equality.Semantic.DeepEqual(before[name], after[name])
	})
}

// showOlder lists the ModelBoxes of the namespace that do not have the current values of their
// sizes.
func (o *statusOptions) showOlder(ctx context.Context) error {
	sizes, err := o.sizes.read()
	if err != nil {
		return err
	}
	c, namespace, err := o.connect()
	if err != nil {
		return err
	}
	list := &modelv1.ModelBoxList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(o.Out, 0, 8, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSIZE\tOLDER FIELDS")
	for i := range list.Items {
		box := &list.Items[i]
		fields := []string{"no such size"}
		if sizes[box.Spec.ResourceType] != nil {
			fields = older(box, sizes)
		}
		if len(fields) > 0 && modelbox.IsSize(box.Spec.ResourceType) {
			fmt.Fprintf(table, "%s\t%s\t%s\n", box.Name, box.Spec.ResourceType, strings.Join(fields, ", "))
		}
	}
	return table.Flush()
}

// older returns the fields that a resize would change.
func older(box *modelv1.ModelBox, sizes modelbox.Sizes) []string {
	next, kind := box.DeepCopy(), modelbox.KindWithSizes(sizes)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, modelv1.ResizeAnnotation, strconv.FormatInt(box.Generation, 10))
	kind.SetDefaults(next, box)
	codec := kind.Codec(next, box)
	sent, _ := json.Marshal(box) // It was decoded from JSON.
	ops, _ := domain.Diff(sent, codec.Spec(box), codec.Spec(next))
	var out []string
	for _, op := range ops {
		out = append(out, strings.TrimPrefix(op.Path, "/spec/"))
	}
	return out
}
