// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The sizes of the ConfigMap, with what the API server says about the user's permission.
func TestSizesOfTheCluster(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "modelbox-sizes"},
		Data: map[string]string{"sizes.yaml": `sizes:
  gpu: {description: one GPU, resources: {limits: {cpu: 8, memory: 32Gi, nvidia.com/gpu: 1}}, server: {image: "llm:1"}}
  tiny: {resources: {requests: {cpu: "1"}}}`},
	}
	if err := c.client.Create(ctx, stored); err != nil {
		t.Fatal(err)
	}
	want(t, c.run("sizes", "--operator-namespace", c.namespace), result{out: `
NAME   CPU   MEMORY   ACCELERATORS   IMAGE   MAY USE   DESCRIPTION
gpu    8     32Gi     1              llm:1   yes       one GPU
tiny   1     -        -              -       yes       
`})
	if got := c.run("sizes", "--operator-namespace", "none"); got.code != 1 || !strings.Contains(got.err, "name a file with --sizes") {
		t.Errorf("%+v", got)
	}
	for _, of := range []string{"app/web", "modelbox/none"} {
		if got := c.run("resize", of); got.code == 0 || got.err == "" {
			t.Errorf("%s: %+v", of, got)
		}
	}
	c.create(modelBox.object("small", spec{"image": "a:1", "resourceType": "small"}))
	if got := c.run("resize", "modelbox/small"); !strings.Contains(got.err, `its resourceType is "small"`) {
		t.Errorf("%+v", got)
	}
}
