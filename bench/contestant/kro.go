// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package contestant

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

	"github.com/modelbox-operator/modelbox-operator/bench/boxes"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
)

// graph is a ResourceGraphDefinition that makes the same Deployment and Service,
// and a status that needs nothing that only a Deployment controller would write:
// there is none here, and kro would wait for it.
//
//go:embed kro.yaml
var graph []byte

var kroBoxes = schema.GroupVersionResource{Group: "kro.run", Version: "v1alpha1", Resource: "boxes"}

// Kro is https://kro.run with the flags that it has by default.
func Kro() *Contestant {
	return &Contestant{
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

// KroTuned is kro with as many workers as the operator has, with no limit to
// requests and events, and without the log lines of a developer.
func KroTuned() *Contestant {
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
	addresses, err := Addresses(2)
	if err != nil {
		return nil, err
	}
	return []string{"--metrics-bind-address=" + addresses[0], "--health-probe-bind-address=" + addresses[1]}, nil
}

func kroCRDs(ctx context.Context) ([]string, error) {
	dir, err := kro.dir(ctx, "github.com/kubernetes-sigs/kro")
	return []string{filepath.Join(dir, "helm", "crds")}, err
}

// prepareKro lets kro make a CRD of the graph, and ends it: like all contestants
// it is started for good when the objects are there.
func prepareKro(ctx context.Context, c *Contestant, p *plane.Plane, account *plane.Account) error {
	definition := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(graph, &definition.Object); err != nil {
		return err
	}
	if err := p.Client.Create(ctx, definition); err != nil {
		return fmt.Errorf("making the ResourceGraphDefinition: %w", err)
	}
	process, err := c.Start(p, account)
	if err != nil {
		return err
	}
	defer process.Stop()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kroBoxes.GroupVersion().WithKind("BoxList"))
	err = plane.Poll(ctx, 500*time.Millisecond, time.Minute, "waiting for kro's CRD", func() (bool, error) {
		served := p.Client.List(ctx, list, client.InNamespace(plane.Namespace))
		return served == nil, process.Alive()
	})
	if err != nil {
		return errors.Join(err, errors.New(logTail(filepath.Join(p.Dir, c.Name+".log"))))
	}
	return p.Rest(ctx)
}

// kroBox asks for what boxes.ModelBox asks for, in the words of the graph.
func kroBox(i int) client.Object {
	box := boxes.ModelBox(i)
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
