// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package configuration tells what data the ConfigMaps and Secrets have that pod templates refer to, so that a
// change of the data becomes a change of the pod template: a rollout with a history. It watches their
// metadata alone, and only once an object asks (spec.restartOnChange), and reads the data of one when it has changed.
package configuration

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/modelbox-operator/modelbox-operator/controller/cache"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch

const (
	// burst is how long the data of a ConfigMap is not read after a change, so that several edits are one rollout.
	burst = 2 * time.Second
	// refusedFor is how long a watch is not tried again for which there is no permission.
	refusedFor = 5 * time.Minute
	// named is how many objects a message names.
	named = 3
)

// Sources are the ConfigMaps and Secrets that the objects of one kind refer to. It is safe for concurrent use.
type Sources struct {
	// Metadata reads, from the cache, the metadata of objects of the kinds that are watched. Live reads from the API server.
	Metadata, Live client.Reader
	Clock          clock.PassiveClock
	// Watch starts the watch of a kind; see watch.
	Watch func(ctx context.Context, kind string) error

	// reading is held while requests are sent, so that the data of one object is in memory.
	reading sync.Mutex
	watched map[string]watched

	mu sync.Mutex
	// refs are what the owners refer to, by their namespace and name.
	refs  map[string]map[string][]workload.Reference
	known map[subject]known
}

// subject is a ConfigMap or a Secret of a namespace.
type subject struct {
	workload.Reference
	namespace string
}

// watched is the result of the last attempt to watch a kind.
type watched struct {
	err error
	at  time.Time
}

// known is the data that was read last.
type known struct {
	version string
	digest  [sha256.Size]byte
	// missing is true if there was no object.
	missing bool
	// changed is when another version was seen for the first time, the zero time if there is none.
	changed time.Time
}

// Observed is what is known of the references of an object.
type Observed struct {
	Digests Digests
	// Note says what does not exist, or may not be read; it is empty if that is nothing.
	Note string
	// Again is after which time to look again, without an event; 0 is never.
	Again time.Duration
}

// Observe returns the digests of what an owner refers to, and enqueues the owner from now on when that changes. It reads the data of
// what it does not know, or what changed 2 seconds ago or earlier.
func (s *Sources) Observe(ctx context.Context, owner types.NamespacedName, refs []workload.Reference) (Observed, error) {
	s.set(owner, refs) // First: what changes from now on is an event.
	s.reading.Lock()
	defer s.reading.Unlock()
	out := Observed{Digests: Digests{}}
	var problems []string
	for _, ref := range refs {
		digest, again, err := s.digest(ctx, subject{ref, owner.Namespace})
		switch {
		case apierrors.IsNotFound(err):
			problems = append(problems, fmt.Sprintf("%s %q does not exist", ref.Kind, ref.Name))
		case apierrors.IsForbidden(err):
			problems = append(problems, fmt.Sprintf("%s %q may not be read by the operator", ref.Kind, ref.Name))
			again = refusedFor
		case err != nil:
			return Observed{}, fmt.Errorf("reading %s %q: %w", ref.Kind, ref.Name, err)
		default:
			out.Digests[ref] = digest
		}
		out.Again = trigger.Sooner(out.Again, again)
	}
	out.Note = note(problems)
	return out, nil
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

// digest returns the digest of the data of an object, and after which time that is to be asked again. While a change is younger
// than burst, it is that of the data before.
func (s *Sources) digest(ctx context.Context, of subject) (digest [sha256.Size]byte, again time.Duration, err error) {
	if err := s.watch(ctx, of.Kind); err != nil {
		return digest, 0, err
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(of.Kind))
	absent := s.Metadata.Get(ctx, client.ObjectKey{Namespace: of.namespace, Name: of.Name}, meta)
	if client.IgnoreNotFound(absent) != nil {
		return digest, 0, absent
	}
	last, found := s.last(of)
	switch {
	case found && absent != nil:
		return digest, 0, absent
	case found && !last.missing:
		if again, current := s.current(of, last, meta.ResourceVersion); current {
			return last.digest, again, nil
		}
	}
	// One that is not known and that the cache does not have may be newer than the cache.
	data, version, err := s.read(ctx, of)
	if client.IgnoreNotFound(err) != nil {
		return digest, 0, err
	}
	last = known{version: version, digest: digestOf(data), missing: err != nil}
	s.remember(of, last)
	return last.digest, 0, err
}

// current reports whether the data that was read last is used for a version: it is its data, or the change is younger than
// burst, which ends after the time again.
func (s *Sources) current(of subject, last known, version string) (again time.Duration, current bool) {
	if last.version == version {
		return 0, true
	}
	if last.changed.IsZero() {
		last.changed = s.Clock.Now()
		s.remember(of, last)
	}
	again = burst - s.Clock.Since(last.changed)
	return again, again > 0 && again <= burst // A clock that is set back ends it.
}

// watch starts the watch of a kind with the first object that asks.
func (s *Sources) watch(ctx context.Context, kind string) error {
	last, tried := s.watched[kind]
	if tried && (last.err == nil || s.Clock.Since(last.at) < refusedFor) {
		return last.err
	}
	err := s.Watch(ctx, kind)
	if err != nil && !apierrors.IsForbidden(err) {
		return err
	}
	if s.watched == nil {
		s.watched = map[string]watched{}
	}
	s.watched[kind] = watched{err, s.Clock.Now()}
	return err
}

func (s *Sources) read(ctx context.Context, of subject) (data map[string][]byte, version string, err error) {
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

func (s *Sources) last(of subject) (last known, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, found = s.known[of]
	return last, found
}

func (s *Sources) remember(of subject, as known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[of] = as
}

// set sets what an owner refers to, and forgets the data of what it does not refer to any more. It is read again for another
// owner that does.
func (s *Sources) set(owner types.NamespacedName, refs []workload.Reference) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refs == nil {
		s.refs, s.known = map[string]map[string][]workload.Reference{}, map[subject]known{}
	}
	for ref := range sets.New(s.refs[owner.Namespace][owner.Name]...).Difference(sets.New(refs...)) {
		delete(s.known, subject{ref, owner.Namespace})
	}
	all := s.refs[owner.Namespace]
	if all == nil {
		all = map[string][]workload.Reference{}
		s.refs[owner.Namespace] = all
	}
	if all[owner.Name] = refs; len(refs) == 0 {
		delete(all, owner.Name)
	}
	if len(all) == 0 {
		delete(s.refs, owner.Namespace)
	}
}

// Forget removes what is held of an owner that was deleted, or does not ask any more.
func (s *Sources) Forget(owner types.NamespacedName) {
	if s != nil {
		s.set(owner, nil)
	}
}

// ownersOf returns the owners that refer to an object.
func (s *Sources) ownersOf(kind, namespace, name string) (owners []types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for owner, refs := range s.refs[namespace] {
		if slices.Contains(refs, workload.Reference{Kind: kind, Name: name}) {
			owners = append(owners, types.NamespacedName{Namespace: namespace, Name: owner})
		}
	}
	return owners
}

// New returns the sources of the objects of a controller, whose watches enqueue these.
func New(mgr manager.Manager, c controller.Controller, clk clock.PassiveClock) *Sources {
	s := &Sources{Metadata: mgr.GetClient(), Live: mgr.GetAPIReader(), Clock: clk}
	s.Watch = func(ctx context.Context, kind string) error {
		if _, err := cache.Find(ctx, s.Live, mgr.GetCache(), corev1.SchemeGroupVersion.WithKind(kind)); err != nil {
			return err
		}
		watched := &metav1.PartialObjectMetadata{}
		watched.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		informer, err := trigger.Synced(ctx, mgr.GetCache(), watched)
		if err != nil {
			return err
		}
		return c.Watch(&source.Informer{Informer: informer, Handler: s.enqueue(kind), Predicates: []predicate.Predicate{predicate.ResourceVersionChangedPredicate{}}})
	}
	return s
}

// enqueue enqueues the owners that refer to an object.
func (s *Sources) enqueue(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, owner := range s.ownersOf(kind, obj.GetNamespace(), obj.GetName()) {
			requests = append(requests, reconcile.Request{NamespacedName: owner})
		}
		return requests
	})
}

// Digests are the SHA-256 of the data of ConfigMaps and Secrets. One that does not exist, or may not be read, is missing.
type Digests map[workload.Reference][sha256.Size]byte

// Annotation returns the value of api.AnnotationConfiguration for the references of a pod template, a line for each: its
// kind, its name, and 16 hexadecimal digits of the HMAC-SHA256 of its digest, with the uid of the owner as key. live is the value
// that the pod template has now. A reference without a digest keeps its line in live; one that has no line there either has a
// line without a hash, so that a ConfigMap which does not exist is no reason for a rollout, and its creation is
// one. With hold every reference keeps its line. It is pure.
func (d Digests) Annotation(uid types.UID, refs []workload.Reference, live string, hold bool) string {
	before := map[string]string{}
	for line := range strings.Lines(live) {
		name, hash, _ := strings.Cut(strings.TrimSpace(line), " ")
		before[name] = hash
	}
	var lines []string
	for _, ref := range refs {
		hash, known := before[ref.String()]
		if digest, ok := d[ref]; ok && (!known || !hold) {
			hash = keyed(uid, digest)
		}
		lines = append(lines, strings.TrimSpace(ref.String()+" "+hash))
	}
	return strings.Join(lines, "\n")
}

func keyed(uid types.UID, digest [sha256.Size]byte) string {
	mac := hmac.New(sha256.New, []byte(uid))
	_, _ = mac.Write(digest[:]) // A hash returns no error.
	return hex.EncodeToString(mac.Sum(nil)[:8])
}

// Changed returns the references whose line differs between two values.
func Changed(a, b string) (out []string) {
	before := slices.Collect(strings.Lines(a + "\n"))
	for line := range strings.Lines(b + "\n") {
		if !slices.Contains(before, line) {
			name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			out = append(out, name)
		}
	}
	return out
}

// digestOf returns the SHA-256 of data, which does not depend on its order: each key and each value with its length in front.
func digestOf(data map[string][]byte) (out [sha256.Size]byte) {
	sum := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		for _, part := range [][]byte{[]byte(key), data[key]} {
			_, _ = sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			_, _ = sum.Write(part)
		}
	}
	sum.Sum(out[:0])
	return out
}
