// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package implementation defines the programs that are compared: how each is built and
// started, and which objects it reconciles.
package implementation

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// Implementation is a program that creates a Deployment and a Service for each object
// and writes its status.
type Implementation struct {
	Name    string
	Program Program
	// Flags returns its flags other than the kubeconfig.
	Flags func() ([]string, error)
	// CRDs returns the files or directories of the CRDs that it needs.
	CRDs func(context.Context) ([]string, error)
	// Resource is the resource that it reconciles, and Object builds the i-th object.
	Resource schema.GroupVersionResource
	Object   func(i int) client.Object
	// Slow marks an implementation that needs minutes for a burst because of its own
	// rate limits. It takes about the same time in each round.
	Slow bool
	// NoService marks an implementation that creates no Service.
	NoService bool
	// Prepare prepares a new control plane before objects are created. It may be nil.
	Prepare func(ctx context.Context, c *Implementation, p *controlplane.ControlPlane, account *controlplane.Account) error
}

// All returns the implementations in their order.
func All() []*Implementation {
	return []*Implementation{Ours(), Raw(), Plain(), KroTuned(), Kro(), Sample()}
}

// Ours is the operator's controller as it is deployed, but without leader election: with
// one replica, the lease would only add requests that the others do not send.
func Ours() *Implementation {
	return &Implementation{
		Name:    "ours",
		Program: Controller,
		Flags: func() ([]string, error) {
			addresses, err := freeport.Addresses(2)
			if err != nil {
				return nil, err
			}
			return []string{"--leader-elect=false", "--metrics-bind-address=" + addresses[0], "--health-probe-bind-address=" + addresses[1]}, nil
		},
		CRDs:     operatorCRDs,
		Resource: load.ModelBoxes,
		Object:   modelBox,
	}
}

// OursFull is Ours with objects that have all fields of a model server.
func OursFull() *Implementation {
	full := Ours()
	full.Name = "ours-full"
	full.Object = func(i int) client.Object {
		box := modelboxes.Full(i)
		modelbox.Default(box, nil, nil)
		return box
	}
	return full
}

// Raw is the lower bound of the cost: the same writes, and nothing else.
func Raw() *Implementation {
	return &Implementation{Name: "raw", Program: RawClient, CRDs: operatorCRDs, Resource: load.ModelBoxes, Object: modelBox}
}

// Plain is a controller as tutorials write one.
func Plain() *Implementation {
	return &Implementation{
		Name:    "plain",
		Program: PlainController,
		Flags: func() ([]string, error) {
			addresses, err := freeport.Addresses(1)
			if err != nil {
				return nil, err
			}
			return []string{"--metrics-bind-address=" + addresses[0]}, nil
		},
		CRDs:     operatorCRDs,
		Resource: load.ModelBoxes,
		Object:   modelBox,
	}
}

func operatorCRDs(context.Context) ([]string, error) {
	return []string{controlplane.OperatorCRDs()}, nil
}

func modelBox(i int) client.Object { return modelboxes.ModelBox(i) }

// Check verifies the children of an object: an implementation that is fast because it
// creates something else must not count.
func (c *Implementation) Check(ctx context.Context, p *controlplane.ControlPlane, i int) error {
	key := client.ObjectKey{Namespace: controlplane.Namespace, Name: modelboxes.Name(i)}
	deployment := &appsv1.Deployment{}
	if err := p.Client.Get(ctx, key, deployment); err != nil {
		return err
	}
	if c.NoService {
		return nil
	}
	want := modelboxes.ModelBox(i).Spec
	got := deployment.Spec.Template.Spec.Containers[0]
	if got.Image != want.Image || len(got.Env) != len(want.Envs) || !got.Resources.Limits.Cpu().Equal(*want.Resources.Limits.Cpu()) ||
		got.ReadinessProbe == nil || got.LivenessProbe == nil || *deployment.Spec.Replicas != *want.Replicas {
		return fmt.Errorf("%s created a Deployment that differs from the desired one: %+v", c.Name, deployment.Spec)
	}
	service := &corev1.Service{}
	if err := p.Client.Get(ctx, key, service); err != nil {
		return err
	}
	if service.Spec.Ports[0].Port != want.Ports[0].Port {
		return fmt.Errorf("%s created a Service that differs from the desired one: %+v", c.Name, service.Spec)
	}
	return nil
}

// Start starts the implementation.
func (c *Implementation) Start(p *controlplane.ControlPlane, account *controlplane.Account, more ...string) (*Process, error) {
	var flags []string
	if c.Flags != nil {
		var err error
		if flags, err = c.Flags(); err != nil {
			return nil, err
		}
	}
	return RunAs(c.Program, filepath.Join(p.Dir, c.Name+".log"), account, append(flags, more...)...)
}

// Setup starts a control plane in which objects of the implementation can be created.
func (c *Implementation) Setup(ctx context.Context) (*controlplane.ControlPlane, *controlplane.Account, error) {
	crds, err := c.CRDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := controlplane.Start(ctx, controlplane.Options{CRDs: crds})
	if err != nil {
		return nil, nil, err
	}
	account, err := c.prepare(ctx, p)
	if err != nil {
		_ = p.Stop()
		return nil, nil, fmt.Errorf("preparing %s: %w", c.Name, err)
	}
	return p, account, nil
}

func (c *Implementation) prepare(ctx context.Context, p *controlplane.ControlPlane) (*controlplane.Account, error) {
	account, err := p.Account(ctx, c.Name)
	if err != nil {
		return nil, err
	}
	if c.Prepare != nil {
		if err := c.Prepare(ctx, c, p, account); err != nil {
			return nil, err
		}
	}
	return account, load.WarmUp(ctx, p)
}

// logTail returns the end of a log file.
func logTail(path string) string {
	const most = 2000
	text, _ := os.ReadFile(path)
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return string(text)
}
