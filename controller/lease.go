// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// electionID is the name of the Lease that the replicas of this process compete for.
const electionID = "modelbox-controller"

// The defaults of leader election. A slow API server must not cost the leader its lease:
// a new leader lists every object, and an overloaded server would have to answer that as
// well.
//
// With a lease of L, a renew deadline of D, a retry period of R and a request timeout
// of T = requestTimeout(D):
//
//   - The leader keeps the lease while each answer takes less than T, because a renewal
//     has D until it must have succeeded. With the defaults T is 5.5 s. The remaining
//     half second is for a second attempt where only one answer was lost.
//   - Another replica takes the lease when it has seen no renewal for L. Two renewals
//     reach the API server at most two delays and R after each other: the delay of the
//     first one's answer, and that of the second one's request. So delays that vary
//     between 0 and (L-R)/2 = 3.3 s do not make it take the lease too early.
//   - After a leader died without releasing the lease, another replica acts after L
//     since it saw the last renewal. That renewal was up to R before the death; the
//     attempts of the other replica, to see it and to take the lease, are up to 2.2 R
//     apart. So it takes L-R to L+4.4 R, 6.6 s to 8.8 s, and two requests.
//   - A leader stops at most R+D = 6.4 s after the answer to its last renewal. If that
//     answer was late by more than L-D-R, another replica may have begun by then. This
//     is why every write has preconditions, beside the lease.
const (
	defaultLeaseDuration = 7 * time.Second
	defaultRenewDeadline = 6 * time.Second
	defaultRetryPeriod   = 400 * time.Millisecond
)

// requestTimeout returns how long one request for the lease may take: nearly all of the
// renew deadline. controller-runtime allows half of it, and then a leader whose API
// server answers in a little more than that loses its lease without need.
func requestTimeout(renewDeadline time.Duration) time.Duration {
	return renewDeadline - renewDeadline/12
}

// errLeaseLost is the error of a leader that did not renew its lease in time and therefore
// sends no more requests for it.
var errLeaseLost = errors.New("the lease was not renewed in time: another replica may hold it")

// lease is the lock of leader election: a Lease, with a client of its own.
type lease struct {
	*resourcelock.LeaseLock
	clock clock.PassiveClock
	// valid is how long after its last renewal a leader may still send requests for the lease:
	// the retry period and the renew deadline.
	valid time.Duration

	mu sync.Mutex
	// renewed is when the API server last confirmed that this process is the leader;
	// zero until it is.
	renewed time.Time
}

// leaseOptions are the flags of leader election.
type leaseOptions struct {
	leaderNamespace                           string
	leaseDuration, renewDeadline, retryPeriod time.Duration
}

func (o *leaseOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.leaderNamespace, "leader-election-namespace", "",
		"namespace of the lease; if empty, the namespace of the pod, and outside a pod "+systemNamespace+" if it exists, or else that of the kubeconfig's context")
	flags.DurationVar(&o.leaseDuration, "leader-election-lease-duration", defaultLeaseDuration,
		"how long another replica waits after the last renewal before it takes the lease; whole seconds, and more than the renew deadline")
	flags.DurationVar(&o.renewDeadline, "leader-election-renew-deadline", defaultRenewDeadline, "how long the leader tries to renew before it gives up and exits; a single request may take 11/12 of it")
	flags.DurationVar(&o.retryPeriod, "leader-election-retry-period", defaultRetryPeriod, "time between two attempts to acquire or renew the lease; up to 2.2 times as long in other replicas")
}

// newLease returns the lock of leader election for a process with these options. Where no flag
// names its namespace, outside reads the one of a process that does not run in a pod.
func (o *leaseOptions) newLease(cfg *rest.Config, outside *access) (*lease, error) {
	if o.leaseDuration%time.Second != 0 {
		return nil, fmt.Errorf("--leader-election-lease-duration is %s: a Lease holds whole seconds", o.leaseDuration)
	}
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name, the identity in the lease: %w", err)
	}
	cfg = rest.AddUserAgent(cfg, "leader-election") // A copy.
	cfg.Timeout = requestTimeout(o.renewDeadline)
	namespace, err := o.leaseNamespace(cfg, outside)
	if err != nil {
		return nil, fmt.Errorf("choosing the namespace of the lease, which --leader-election-namespace sets: %w", err)
	}
	leases, err := coordinationv1client.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating the client for the lease: %w", err)
	}
	return &lease{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: electionID},
			Client:    leases,
			// The UUID is new in each process: a restarted container has the same host name.
			LockConfig: resourcelock.ResourceLockConfig{Identity: hostname + "_" + string(uuid.NewUUID())},
		},
		clock: clock.RealClock{},
		valid: o.retryPeriod + o.renewDeadline,
	}, nil
}

// leaseNamespace returns the namespace of the lease: the flag's, or else the pod's own, or else
// the one for a process outside a pod.
func (o *leaseOptions) leaseNamespace(cfg *rest.Config, outside *access) (string, error) {
	if o.leaderNamespace != "" {
		return o.leaderNamespace, nil
	}
	if outside.inPod() {
		data, err := os.ReadFile(podNamespace)
		return strings.TrimSpace(string(data)), err
	}
	return outside.leaseNamespace(cfg)
}

// Get reads the lease. It returns an error in a leader that did not renew in time. Otherwise
// client-go's elector would read the lease once more to release it, for as long as a request
// may take, while this process would still reconcile; and it would release the lease even if
// it has another holder by then.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if l.lost() {
		return nil, nil, errLeaseLost
	}
	return l.LeaseLock.Get(ctx)
}

// Create creates the lease, held by this process.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.confirm(record, l.LeaseLock.Create(ctx, record))
}

// Update acquires, renews or releases the lease.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.confirm(record, l.LeaseLock.Update(ctx, record))
}

// confirm records that this process is the leader, if the write of the lease succeeded.
func (l *lease) confirm(record resourcelock.LeaderElectionRecord, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && record.HolderIdentity == l.Identity() {
		l.renewed = l.clock.Now()
	}
	return err
}

// lost reports whether this process was the leader and did not renew the lease in time.
func (l *lease) lost() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.renewed.IsZero() && l.clock.Since(l.renewed) >= l.valid
}

// recordElections sets the event recorder of a lock to one of a manager. The manager is
// created with the lock, so the lock cannot have the recorder before.
//
// The recorder has the name of the lease and not, as in controller-runtime, that of the
// holder: the API server refuses an event whose reporting controller is longer than 63
// characters, which the name of a pod and a UUID are. client-go begins the message with the
// holder.
func recordElections(lock resourcelock.Interface, provider recorder.Provider) {
	if l, ok := lock.(*lease); ok {
		l.LockConfig.EventRecorder = electionEvents{provider.GetEventRecorder(electionID)}
	}
}

// electionEvents adapts a recorder of the API group events.k8s.io to a lock.
type electionEvents struct{ recorder events.EventRecorder }

// Eventf emits an event when this process becomes the leader, and when it no longer is.
func (e electionEvents) Eventf(lease runtime.Object, eventType, reason, message string, args ...any) {
	e.recorder.Eventf(lease, nil, eventType, reason, "LeaderElection", message, args...)
}
