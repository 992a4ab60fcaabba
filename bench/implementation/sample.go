// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package implementation

import (
	"context"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
)

var foos = schema.GroupVersionResource{Group: "samplecontroller.k8s.io", Version: "v1alpha1", Resource: "foos"}

// Sample is the sample-controller of the Kubernetes project, which uses client-go without
// a framework. It creates a Deployment with one container and writes a status, but
// creates no Service, so it has less work than the others.
func Sample() *Implementation {
	return &Implementation{
		Name:    "sample",
		Program: sample,
		CRDs: func(ctx context.Context) ([]string, error) {
			dir, err := sample.dir(ctx, "k8s.io/sample-controller")
			return []string{filepath.Join(dir, "artifacts", "examples", "crd-status-subresource.yaml")}, err
		},
		Resource:  foos,
		Object:    foo,
		NoService: true,
		Slow:      true, // client-go's default: 5 requests a second for each client.
	}
}

func foo(i int) client.Object {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"deploymentName": modelboxes.Name(i), "replicas": int64(1),
	}}}
	obj.SetGroupVersionKind(foos.GroupVersion().WithKind("Foo"))
	obj.SetName(modelboxes.Name(i))
	return obj
}
