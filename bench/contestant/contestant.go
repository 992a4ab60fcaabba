// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contestant knows the programs that are measured: how each is built and
// started, and what it is given to do.
package contestant

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/bench/boxes"
	"github.com/modelbox-operator/modelbox-operator/bench/load"
	"github.com/modelbox-operator/modelbox-operator/bench/plane"
)

// Contestant is a program that makes of each object a Deployment, a Service and a
// status.
type Contestant struct {
	Name    string
	Program Program
	// Flags are its flags beside the kubeconfig.
	Flags func() ([]string, error)
	// CRDs are what it needs installed.
	CRDs func(context.Context) ([]string, error)
	// Resource is what it is given, Object an object of that.
	Resource schema.GroupVersionResource
	Object   func(i int) client.Object
	// Slow says that its own limits make a burst take it minutes, each time alike.
	Slow bool
	// NoService says that it makes no Service.
	NoService bool
	// Prepare does what has to be done in a fresh plane before objects can be made;
	// nil for nothing.
	Prepare func(ctx context.Context, c *Contestant, p *plane.Plane, account *plane.Account) error
}

// All are the contestants in their order.
func All() []*Contestant {
	return []*Contestant{Ours(), Raw(), Plain(), KroTuned(), Kro(), Sample()}
}

// Ours is the operator's controller, as it is deployed but for the lease: alone, it
// would only be a request now and then that others don't make.
func Ours() *Contestant {
	return &Contestant{
		Name:    "ours",
		Program: Controller,
		Flags: func() ([]string, error) {
			addresses, err := Addresses(2)
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

// Raw is the limit: the same writes, and nothing else.
func Raw() *Contestant {
	return &Contestant{Name: "raw", Program: RawClient, CRDs: operatorCRDs, Resource: load.ModelBoxes, Object: modelBox}
}

// Plain is a controller as tutorials teach one to write it.
func Plain() *Contestant {
	return &Contestant{
		Name:    "plain",
		Program: PlainController,
		Flags: func() ([]string, error) {
			addresses, err := Addresses(1)
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

func operatorCRDs(context.Context) ([]string, error) { return []string{plane.OperatorCRDs()}, nil }

func modelBox(i int) client.Object { return boxes.ModelBox(i) }

// Check looks at what became of an object: a contestant that is fast because it does
// something else would win for nothing.
func (c *Contestant) Check(ctx context.Context, p *plane.Plane, i int) error {
	key := client.ObjectKey{Namespace: plane.Namespace, Name: boxes.Name(i)}
	deployment := &appsv1.Deployment{}
	if err := p.Client.Get(ctx, key, deployment); err != nil {
		return err
	}
	if c.NoService {
		return nil
	}
	want := boxes.ModelBox(i).Spec
	got := deployment.Spec.Template.Spec.Containers[0]
	if got.Image != want.Image || len(got.Env) != len(want.Envs) || !got.Resources.Limits.Cpu().Equal(*want.Resources.Limits.Cpu()) ||
		got.ReadinessProbe == nil || got.LivenessProbe == nil || *deployment.Spec.Replicas != *want.Replicas {
		return fmt.Errorf("%s made another Deployment than it was asked for: %+v", c.Name, deployment.Spec)
	}
	service := &corev1.Service{}
	if err := p.Client.Get(ctx, key, service); err != nil {
		return err
	}
	if service.Spec.Ports[0].Port != want.Ports[0].Port {
		return fmt.Errorf("%s made another Service than it was asked for: %+v", c.Name, service.Spec)
	}
	return nil
}

// Start starts the contestant.
func (c *Contestant) Start(p *plane.Plane, account *plane.Account, more ...string) (*Process, error) {
	var flags []string
	if c.Flags != nil {
		var err error
		if flags, err = c.Flags(); err != nil {
			return nil, err
		}
	}
	return Run(c.Program, filepath.Join(p.Dir, c.Name+".log"), account, append(flags, more...)...)
}

// Ready makes a plane in which the contestant can be given objects.
func (c *Contestant) Ready(ctx context.Context) (*plane.Plane, *plane.Account, error) {
	crds, err := c.CRDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	p, err := plane.Start(ctx, plane.Options{CRDs: crds})
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

func (c *Contestant) prepare(ctx context.Context, p *plane.Plane) (*plane.Account, error) {
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

// logTail is the end of what a process wrote.
func logTail(path string) string {
	const most = 2000
	text, _ := os.ReadFile(path)
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return string(text)
}
