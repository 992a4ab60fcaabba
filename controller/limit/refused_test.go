// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package limit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// forbidden has another text each time, as a policy has that quotes the time.
func (s *server) forbidden() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "box", errors.New(s.Now().String()))
}

// A write that the API server has refused is sent again by the back-off alone, whatever wakes its
// owner: 2 seconds after the first time, and then after pauses that double up to 5 minutes.
// Meanwhile its text stays.
func TestRefusalsAreRepeatedByTheBackOff(t *testing.T) {
	t.Parallel()
	verbs := map[string]func(*server, context.Context, *Owner) error{
		"create": func(s *server, ctx context.Context, owner *Owner) error {
			return s.client.Create(ctx, deployment(""), owner)
		},
		"apply": func(s *server, ctx context.Context, owner *Owner) error {
			return s.client.Patch(ctx, deployment("a"), client.RawPatch(types.ApplyPatchType, nil), owner)
		},
		"scale": func(s *server, ctx context.Context, owner *Owner) error {
			return s.client.SubResource("scale").Patch(ctx, deployment("a"), client.RawPatch(types.MergePatchType, nil), owner)
		},
	}
	for verb, write := range verbs {
		s := newServer()
		owner := For(s.client, "owner", 1)
		texts, begun := map[string]bool{}, s.Now()
		for ; s.Now().Sub(begun) < time.Hour; s.pass(100 * time.Millisecond) {
			s.err = s.forbidden()
			err := write(s, t.Context(), owner)
			if !apierrors.IsForbidden(err) {
				t.Fatalf("%s: %v", verb, err)
			}
			if refused, ok := errors.AsType[*RefusedError](err); ok && (refused.Again <= 0 || refused.Again > longestPause*11/10) {
				t.Fatalf("%s: it is sent again in %v", verb, refused.Again)
			}
			texts[err.Error()] = true
		}
		// 2 + 4 + ... + 256 s are 9 minutes, and 51 minutes have ten or eleven pauses.
		if s.writes < 17 || s.writes > 20 || len(texts) != s.writes {
			t.Errorf("%s: %d writes in an hour, and %d texts", verb, s.writes, len(texts))
		}
		s.err = nil
		s.pass(longestPause * 11 / 10)
		if err := errors.Join(write(s, t.Context(), owner), write(s, t.Context(), owner)); err != nil {
			t.Errorf("%s: once it is accepted: %v", verb, err)
		}
	}
}

// What may end a refusal is tried at once: a change of the owner's spec, or of the object that is
// written. So is another write, and one after a failure that says nothing of the write.
func TestWhatIsNoRepetition(t *testing.T) {
	t.Parallel()
	apply := func(s *server, generation, child int64) error {
		obj := deployment("a")
		obj.SetGeneration(child)
		return s.client.Patch(t.Context(), obj, client.RawPatch(types.ApplyPatchType, nil), For(s.client, "owner", generation))
	}
	for name, test := range map[string]struct {
		err   error
		write func(*server) error
		sent  bool
	}{
		"the same":               {write: func(s *server) error { return apply(s, 1, 1) }},
		"a change of the spec":   {write: func(s *server) error { return apply(s, 2, 1) }, sent: true},
		"a change of the child":  {write: func(s *server) error { return apply(s, 1, 2) }, sent: true},
		"a conflict":             {err: apierrors.NewConflict(schema.GroupResource{}, "a", nil), write: func(s *server) error { return apply(s, 1, 1) }, sent: true},
		"an overloaded server":   {err: apierrors.NewTooManyRequests("later", 1), write: func(s *server) error { return apply(s, 1, 1) }, sent: true},
		"a connection that ends": {err: errors.New("reset"), write: func(s *server) error { return apply(s, 1, 1) }, sent: true},
		"another write": {write: func(s *server) error {
			return s.client.Patch(t.Context(), deployment("a"), client.RawPatch(types.JSONPatchType, nil), For(s.client, "owner", 1))
		}, sent: true},
		"that of another owner": {write: func(s *server) error {
			return s.client.Patch(t.Context(), deployment("a"), client.RawPatch(types.ApplyPatchType, nil), For(s.client, "other", 1))
		}, sent: true},
	} {
		s := newServer()
		if s.err = test.err; s.err == nil {
			s.err = s.forbidden()
		}
		_ = apply(s, 1, 1)
		_ = test.write(s)
		if sent := s.writes == 2; sent != test.sent {
			t.Errorf("%s: sent again: %t", name, sent)
		}
	}
}

// A day later, a refusal is a new one: the pauses begin anew. A clock that is set back delays
// nothing.
func TestARefusalIsForgotten(t *testing.T) {
	t.Parallel()
	s := newServer()
	write := func() error { return s.client.Create(t.Context(), deployment(""), For(s.client, "owner", 1)) }
	for range 20 {
		s.err = s.forbidden()
		_ = write()
		s.pass(longestPause * 11 / 10)
	}
	s.pass(24 * time.Hour)
	_ = write()
	s.pass(firstPause * 11 / 10)
	if before := s.writes; write() == nil || s.writes != before+1 {
		t.Error("the pauses did not begin anew")
	}
	s.pass(-24 * time.Hour)
	if before := s.writes; write() == nil || s.writes != before+1 {
		t.Error("a clock that was set back delays a write")
	}
	for i := range 2000 {
		_ = s.client.Create(t.Context(), deployment(""), For(s.client, types.UID(fmt.Sprint(i)), 1))
		s.pass(time.Minute)
	}
	if n := len(s.client.(*limited).limiter.buckets); n > 2*fewest {
		t.Errorf("%d owners are held", n)
	}
}
