// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// limited is a client whose writes are limited. It has the verbs that the controller's role has:
// create, patch and delete. An apply is a Patch of the type types.ApplyPatchType.
type limited struct {
	client.Client
	limiter *limiter
	waiting *semaphore.Weighted
}

// NewClient creates the client of a manager.
func NewClient(cfg *rest.Config, options client.Options) (client.Client, error) {
	c, err := client.New(cfg, options)
	return New(c, clock.RealClock{}), err
}

// New returns a client that limits the writes of another one. They count for the Owner among their
// options, or else for the object that is written.
func New(c client.Client, clk clock.PassiveClock) client.Client {
	return &limited{Client: c, waiting: semaphore.NewWeighted(waiters), limiter: &limiter{clock: clk, buckets: map[types.UID]*bucket{}}}
}

var errNoOwner = errors.New("the write has no owner to count for")

// write sends a write for an owner, nil for the object itself. A dry run writes nothing. how is the
// verb, the type of a patch, or the subresource.
func (c *limited) write(o *Owner, obj client.Object, how string, isPatch bool, dryRun []string, send func() error) error {
	if len(dryRun) > 0 {
		return send()
	}
	what := ContestedError{Object: fmt.Sprintf("%s %q", kinds.KindOf(obj), obj.GetName()), Manager: Manager(obj)}
	switch {
	case o == nil && obj.GetUID() == "":
		return errNoOwner
	case o == nil:
		o = &Owner{limiter: c.limiter, uid: obj.GetUID()}
	}
	// The response to a patch that changed nothing has the version that was sent.
	version := obj.GetResourceVersion()
	return o.unlessRefused(what.Object+" "+how, versionOf(obj), func() error {
		return o.write(what, func() (bool, error) {
			err := send()
			return !isPatch || obj.GetResourceVersion() != version, err
		})
	})
}

// ownerIn returns the owner among the options of a write, nil if there is none.
func ownerIn[Option any](opts []Option) *Owner {
	for _, opt := range opts {
		if o, ok := any(opt).(*Owner); ok {
			return o
		}
	}
	return nil
}

// Create implements client.Writer.
func (c *limited) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	dryRun := (&client.CreateOptions{}).ApplyOptions(opts).DryRun
	return c.write(ownerIn(opts), obj, "create", false, dryRun, func() error { return c.Client.Create(ctx, obj, opts...) })
}

// Delete implements client.Writer.
func (c *limited) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.write(ownerIn(opts), obj, "delete", false, nil, func() error { return c.Client.Delete(ctx, obj, opts...) })
}

// Patch implements client.Writer.
func (c *limited) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	dryRun := (&client.PatchOptions{}).ApplyOptions(opts).DryRun
	return c.write(ownerIn(opts), obj, string(patch.Type()), true, dryRun, func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

// Status implements client.StatusClient.
func (c *limited) Status() client.SubResourceWriter { return c.SubResource("status") }

// SubResource implements client.SubResourceClientConstructor.
func (c *limited) SubResource(name string) client.SubResourceClient {
	return &subResource{SubResourceClient: c.Client.SubResource(name), limited: c, name: name}
}

type subResource struct {
	client.SubResourceClient
	limited *limited
	name    string
}

// Patch implements client.SubResourceWriter.
func (s *subResource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	send := func() error { return s.SubResourceClient.Patch(ctx, obj, patch, opts...) }
	o := ownerIn(opts)
	if o != nil && s.name == "status" {
		return o.writeStatus(send)
	}
	return s.limited.write(o, obj, s.name, false, nil, send)
}
