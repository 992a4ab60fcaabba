// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package implementation

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
)

// graph is a ResourceGraphDefinition with the same Deployment and Service. Its status
// does not depend on fields that a Deployment controller writes: there is no Deployment
// controller here, and kro would wait for them.
//
//go:embed kro.yaml
var graph []byte

var kroBoxes = schema.GroupVersionResource{Group: "kro.run", Version: "v1alpha1", Resource: "boxes"}

// Kro is https://kro.run with its default flags.
func Kro() *Implementation {
	return &Implementation{
		Name:     "kro",
		Program:  kro,
		Flags:    kroFlags,
		CRDs:     kroCRDs,
		Resource: kroBoxes,
		Object:   kroBox,
		Prepare:  prepareKro,
		Slow:     true, // 100 requests a second.
	}
}

// KroTuned is kro with as many workers as the operator, without rate limits for
// requests and events, and without debug logs.
func KroTuned() *Implementation {
	c := Kro()
	c.Name, c.Slow = "kro-tuned", false
	c.Flags = func() ([]string, error) {
		flags, err := kroFlags()
		return append(flags,
			"--dynamic-controller-concurrent-reconciles=8",
			"--dynamic-controller-rate-limiter-rate-limit=100000",
			"--dynamic-controller-rate-limiter-burst-limit=100000",
			"--client-qps=100000", "--client-burst=100000",
			"--zap-devel=false", "--zap-log-level=error",
		), err
	}
	return c
}

func kroFlags() ([]string, error) {
	addresses, err := freeport.Addresses(2)
	if err != nil {
		return nil, err
	}
	return []string{"--metrics-bind-address=" + addresses[0], "--health-probe-bind-address=" + addresses[1]}, nil
}

func kroCRDs(ctx context.Context) ([]string, error) {
	dir, err := kro.dir(ctx, "github.com/kubernetes-sigs/kro")
	return []string{filepath.Join(dir, "helm", "crds")}, err
}

// prepareKro starts kro until it has created the CRD of the graph, and stops it. Like
// all implementations, it is started for the measurement when the objects exist.
func prepareKro(ctx context.Context, c *Implementation, p *controlplane.ControlPlane, account *controlplane.Account) error {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(graph, &definition.Object); err != nil {
		return err
	}
	if err := p.Client.Create(ctx, definition); err != nil {
		return fmt.Errorf("creating the ResourceGraphDefinition: %w", err)
	}
	process, err := c.Start(p, account)
	if err != nil {
		return err
	}
	defer process.Stop()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kroBoxes.GroupVersion().WithKind("BoxList"))
	err = controlplane.Poll(ctx, 500*time.Millisecond, time.Minute, "waiting for kro's CRD", func() (bool, error) {
		served := p.Client.List(ctx, list, client.InNamespace(controlplane.Namespace))
		return served == nil, process.Alive()
	})
	if err != nil {
		return errors.Join(err, errors.New(logTail(filepath.Join(p.Dir, c.Name+".log"))))
	}
	return p.WaitIdle(ctx)
}

// kroBox returns modelboxes.ModelBox as an object of the graph's kind.
func kroBox(i int) client.Object {
	box := modelboxes.ModelBox(i)
	var envs []any
	for _, env := range box.Spec.Envs {
		envs = append(envs, map[string]any{"name": env.Name, "value": env.Value})
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"name":     box.Spec.Name,
		"image":    box.Spec.Image,
		"replicas": int64(*box.Spec.Replicas),
		"cpu":      box.Spec.Resources.Limits.Cpu().String(),
		"memory":   box.Spec.Resources.Limits.Memory().String(),
		"port":     int64(box.Spec.Ports[0].Port),
		"envs":     envs,
	}}}
	obj.SetGroupVersionKind(kroBoxes.GroupVersion().WithKind("Box"))
	obj.SetName(box.Name)
	return obj
}
