// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration tells what data the ConfigMaps and Secrets have that pod templates refer
// to, so that a change of the data becomes a change of the pod template: a rollout with a history.
// It watches their metadata alone, and only once an object asks (spec.restartOnChange), and reads
// the data of one when it has changed.
package configuration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

const (
	// quiet is how long nothing of what an object refers to must have changed before the data is
	// read, so that several edits are one rollout, and longestChange is after which time it is read
	// in any case.
	quiet, longestChange = 2 * time.Second, 30 * time.Second
	// refusedFor is after which time an object is looked at again that refers to what may not be
	// read, and whileStarting while the watch of a kind starts.
	refusedFor, whileStarting = 5 * time.Minute, 200 * time.Millisecond
	// named is how many objects a message names.
	named = 3
)

// Sources are the ConfigMaps and Secrets that the objects of one kind refer to. It is safe for
// concurrent use, and holds no lock while a request is sent.
type Sources struct {
	// Metadata reads, from the cache, the metadata of objects of the kinds that are watched. Live
	// reads from the API server.
	Metadata, Live client.Reader
	Clock          clock.PassiveClock
	// Watch starts the watch of a kind beside the reconciles, and returns nil when it runs; see
	// watches.Start.
	Watch func(ctx context.Context, kind string) error

	controller controller.Controller

	mu sync.Mutex
	// refs are what the owners refer to, by their namespace and name.
	refs  map[string]map[string][]workload.Reference
	known map[subject]known
	// changes are those of the owners that refer to something whose data is not known.
	changes map[types.NamespacedName]change
}

// subject is a ConfigMap or a Secret of a namespace.
type subject struct {
	workload.Reference
	namespace string
}

// known is the data that was read last.
type known struct {
	version string
	digest  Digest
	// missing is true if there was no object.
	missing bool
}

// change is one that has not been read yet.
type change struct {
	// versions are those in the cache.
	versions    map[workload.Reference]string
	first, last time.Time
}

// Observed is what is known of the references of an object.
type Observed struct {
	Digests Digests
	// Read are those that were read from the API server now, and Unread those that cannot be read.
	Read, Unread []workload.Reference
	// Missing are those that do not exist.
	Missing []workload.Reference
	// Note says what does not exist, or may not be read; it is empty if that is nothing.
	Note string
	// Again is after which time to look again, without an event; 0 is never.
	Again time.Duration
}

// Observe returns the digests of what an owner refers to, and enqueues the owner from now on when
// that changes. Data that has changed is read together, 2 seconds after the last change of one of
// the references and 30 seconds after the first one. With live, all of it is read now. What is
// known is returned with an error, too: another error than that something does not exist or may not
// be read.
func (s *Sources) Observe(ctx context.Context, owner types.NamespacedName, refs []workload.Reference, live bool) (Observed, error) {
	s.set(owner, refs) // First: what changes from now on is an event.
	out := Observed{Digests: Digests{}}
	changed, failed := map[workload.Reference]string{}, map[workload.Reference]error{}
	for _, ref := range refs {
		version, err := s.version(ctx, subject{ref, owner.Namespace})
		last, found := s.last(subject{ref, owner.Namespace})
		switch {
		case live || err == nil && (!found || last.version != version):
			changed[ref] = version
		case err != nil:
			failed[ref] = err
		case last.missing:
			failed[ref] = errMissing
		default:
			out.Digests[ref] = last.digest
		}
	}
	if wait := s.wait(owner, changed); wait > 0 && !live {
		out.Again, changed = wait, nil
	}
	for ref := range changed {
		digest, err := s.read(ctx, subject{ref, owner.Namespace})
		if err != nil {
			failed[ref] = err
		} else {
			out.Digests[ref] = digest
			out.Read = append(out.Read, ref)
		}
	}
	return out, out.explain(refs, failed)
}

// errMissing reports that an object does not exist.
var errMissing = errors.New("does not exist")

// explain sets what is said of the references that have failed, and returns the errors of those
// that are to be tried again.
func (o *Observed) explain(refs []workload.Reference, failed map[workload.Reference]error) (all error) {
	var problems []string
	for _, ref := range refs {
		switch err := failed[ref]; {
		case err == nil:
		case errors.Is(err, errMissing):
			problems = append(problems, fmt.Sprintf("%s %q does not exist", ref.Kind, ref.Name))
			o.Missing = append(o.Missing, ref)
		case errors.Is(err, watches.ErrStarting):
			o.Again = trigger.Sooner(o.Again, whileStarting)
		case apierrors.IsForbidden(err):
			problems = append(problems, fmt.Sprintf("%s %q may not be read by the operator", ref.Kind, ref.Name))
			o.Unread = append(o.Unread, ref)
			o.Again = trigger.Sooner(o.Again, refusedFor)
		default:
			o.Unread = append(o.Unread, ref)
			all = errors.Join(all, fmt.Errorf("reading %s %q: %w", ref.Kind, ref.Name, err))
		}
	}
	o.Note = note(problems)
	return all
}

func note(problems []string) string {
	if len(problems) == 0 {
		return ""
	}
	if more := len(problems) - named; more > 0 {
		problems = append(problems[:named:named], fmt.Sprintf("and %d more", more))
	}
	return "spec.restartOnChange: " + strings.Join(problems, ", ") + ": a change of it replaces no pods"
}

// version returns the version of an object in the cache, "" if it is not there.
func (s *Sources) version(ctx context.Context, of subject) (string, error) {
	if err := s.Watch(ctx, of.Kind); err != nil {
		return "", err
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(of.Kind))
	err := s.Metadata.Get(ctx, client.ObjectKey{Namespace: of.namespace, Name: of.Name}, meta)
	return meta.ResourceVersion, client.IgnoreNotFound(err)
}

// wait returns how long changed references of an owner are not read yet. Those of which nothing is
// known do not wait.
func (s *Sources) wait(owner types.NamespacedName, changed map[workload.Reference]string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref := range changed {
		if _, found := s.known[subject{ref, owner.Namespace}]; !found {
			return 0
		}
	}
	if len(changed) == 0 {
		delete(s.changes, owner)
		return 0
	}
	c, now := s.changes[owner], s.Clock.Now()
	if c.first.IsZero() || now.Before(c.last) { // A clock that is set back begins anew.
		c = change{first: now}
	}
	if !maps.Equal(c.versions, changed) {
		c.versions, c.last = changed, now
	}
	s.changes[owner] = c
	wait := min(c.last.Add(quiet).Sub(now), c.first.Add(longestChange).Sub(now))
	if wait <= 0 {
		delete(s.changes, owner)
	}
	return wait
}

// read reads the data of an object. No lock is held meanwhile.
func (s *Sources) read(ctx context.Context, of subject) (Digest, error) {
	data, version, err := s.data(ctx, of)
	if client.IgnoreNotFound(err) != nil {
		return Digest{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, found := s.known[of]
	now := known{version: version, missing: err != nil, digest: Digest{Sum: digestOf(data)}}
	now.digest.First = !now.missing && (!found || last.digest.First && last.digest.Sum == now.digest.Sum)
	s.known[of] = now
	if now.missing {
		return Digest{}, errMissing
	}
	return now.digest, nil
}

func (s *Sources) last(of subject) (last known, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, found = s.known[of]
	return last, found
}

func (s *Sources) data(ctx context.Context, of subject) (data map[string][]byte, version string, err error) {
	key := client.ObjectKey{Namespace: of.namespace, Name: of.Name}
	if of.Kind == workload.KindSecret {
		secret := &corev1.Secret{}
		err := s.Live.Get(ctx, key, secret)
		return secret.Data, secret.ResourceVersion, err
	}
	configMap := &corev1.ConfigMap{}
	err = s.Live.Get(ctx, key, configMap)
	data = make(map[string][]byte, len(configMap.Data)+len(configMap.BinaryData))
	for name, value := range configMap.Data { // The API server refuses a key that both have.
		data[name] = []byte(value)
	}
	maps.Copy(data, configMap.BinaryData)
	return data, configMap.ResourceVersion, err
}
