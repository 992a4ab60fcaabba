// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// contended makes others write to each object once, or always, between the command's read and its write.
func (c *cluster) contended(always bool, change string) (conflicts *int) {
	conflicts, before := new(int), map[string]bool{}
	c.client = interceptor.NewClient(c.client, interceptor.Funcs{
		Patch: func(ctx context.Context, next client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			gvk, err := next.GroupVersionKindFor(obj)
			if err != nil {
				return err
			}
			dryRun := len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0
			if name := gvk.Kind + obj.GetName(); !dryRun && (always || !before[name]) {
				before[name] = true
				other := &metav1.PartialObjectMetadata{}
				other.SetGroupVersionKind(gvk)
				other.SetNamespace(obj.GetNamespace())
				other.SetName(obj.GetName())
				body := client.RawPatch(types.MergePatchType, []byte(strings.ReplaceAll(change, "VERSION", obj.GetResourceVersion())))
				write := func() error { return env.Client.Patch(ctx, other, body) }
				if strings.HasPrefix(change, `{"status"`) {
					write = func() error { return env.Client.Status().Patch(ctx, other, body) }
				}
				if err := write(); err != nil {
					return err
				}
			}
			if err = next.Patch(ctx, obj, patch, opts...); apierrors.IsConflict(err) {
				*conflicts++
			}
			return err
		},
	})
	return conflicts
}

// A controller or an autoscaler may write to an object between a command's read and its write. The command reads and
// decides again, and gives up if that never ends.
func TestWritesOfOthers(t *testing.T) {
	const status = `{"status":{"conditions":[{"type":"SeenVERSION","status":"True","reason":"A","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`
	for _, tc := range []struct {
		args      string
		conflicts int
	}{
		{"adopt deployment/other service/other --apply", 2},
		{"undo modelbox/web --to-revision 2 --yes", 1},
		{"restart modelbox/web", 1},
	} {
		for _, always := range []bool{false, true} {
			c, _ := withHistory(t)
			c.create(deploymentOf("other", nil, ""), serviceOf("other"))
			conflicts := c.contended(always, status)
			got := c.run(strings.Fields(tc.args)...)
			if always && (got.code != 1 || !strings.Contains(got.err, "the object has been modified")) || !always && (got.code != 0 || got.err != "" || *conflicts != tc.conflicts) {
				t.Errorf("%s: %d conflicts: %+v", tc.args, *conflicts, got)
			}
			if strings.Count(got.out, "+++") > 1 || strings.Count(got.out, "created") > 1 {
				t.Errorf("%s: the same is printed again: %s", tc.args, got.out)
			}
		}
	}
}

// The user agrees to one difference only.
func TestUndoOfWhatOthersChange(t *testing.T) {
	c, box := withHistory(t)
	c.contended(false, `{"spec":{"replicas":2,"resourceType":"medium","resources":null}}`)
	c.interactive, c.stdin = true, "y\n"
	got := c.run("undo", "modelbox/web", "--to-revision", "2")
	if got.code != 1 || strings.Count(got.out, "[y/N]") != 2 || !strings.Contains(got.out, "-  resourceType: medium\n+  resourceType: large\n") {
		t.Errorf("got %+v", got)
	}
	if c.get(box); box.Spec.Image != "nginx:2" {
		t.Errorf("got %+v", box.Spec)
	}
}
