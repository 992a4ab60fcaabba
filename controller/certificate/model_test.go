// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"crypto/x509"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The model has two processes that both act, as if leader election did not work, API servers and
// pods. Each of them sees an earlier state of the Secret or of the configurations. Requests are
// delayed or lost, as are their answers, processes crash, their clocks jump, and others
// remove caBundle. It uses the decisions of the package, and its steps in place of the API.
const (
	// apiLag and podLag are less than the delays between steps.
	apiLag, podLag = settle - 5*time.Second, mounted - 5*time.Second
	// cacheLag is how far behind the informers of a process may be, and delay how long a request
	// may take.
	cacheLag, delay = 3 * time.Minute, 30 * time.Second
	// skew is less than certificates are backdated.
	skew = backdated - 10*time.Minute
)

// version is a state of an object from a time on. Its number is the resource version.
type version[T any] struct {
	from  time.Duration
	value T
}

// history is an object with all its states.
type history[T any] []version[T]

func (h history[T]) latest() T { return h[len(h)-1].value }

// seenBy advances an observer's index: to no state that another one has replaced before the
// lag, and no further than to the latest.
func (h history[T]) seenBy(r *rand.Rand, at int, now, lag time.Duration) int {
	for at+1 < len(h) && (now-h[at+1].from >= lag || r.IntN(8) == 0) {
		at++
	}
	return at
}

type modelSecret struct {
	data      map[string][]byte
	requested bool
}

type modelBundle struct {
	bundle []byte
	// tampered: another client wrote it, so nothing is expected of it.
	tampered bool
}

type modelPod struct {
	at     int
	served pair
}

type modelServer struct{ at [2]int }

type modelProcess struct {
	secret      int
	configs     [2]int
	skew        time.Duration
	state       string
	since, wake time.Duration
}

type model struct {
	r         *rand.Rand
	rules     Options
	now       time.Duration
	secrets   history[modelSecret]
	configs   [2]history[modelBundle]
	pods      [3]modelPod
	servers   [3]modelServer
	processes [2]modelProcess
	// pending are requests that have not arrived.
	pending  []func() bool
	verified map[[2]string]*usable
	served   map[string]bool
	steps    map[step]int
	settled  bool
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func newModel(seed uint64, change func(*Options)) *model {
	m := &model{
		r:        rand.New(rand.NewPCG(seed, 1)),
		rules:    Options{Service: "modelbox-webhook", Namespace: "modelbox-system", Validity: 720 * time.Hour, Settle: settle, Mounted: mounted},
		secrets:  history[modelSecret]{{value: modelSecret{data: map[string][]byte{}}}},
		verified: map[[2]string]*usable{}, served: map[string]bool{}, steps: map[step]int{},
	}
	for i := range m.configs {
		m.configs[i] = history[modelBundle]{{value: modelBundle{tampered: true}}}
	}
	change(&m.rules)
	return m
}

// tick lets some time pass, and something happen to everything.
func (m *model) tick(faults bool) error {
	m.now += time.Duration(1+m.r.IntN(20)) * time.Second
	m.arrive(faults)
	for i := range m.processes {
		m.run(&m.processes[i], faults)
	}
	for i := range m.pods {
		m.sync(&m.pods[i])
	}
	for i := range m.servers {
		for j := range m.configs {
			m.servers[i].at[j] = m.configs[j].seenBy(m.r, m.servers[i].at[j], m.now, apiLag)
		}
	}
	if faults && m.r.IntN(150) == 0 {
		m.tamper()
	}
	return m.check()
}

// arrive lets requests arrive, in any order.
func (m *model) arrive(faults bool) {
	waiting := m.pending
	m.pending = nil
	m.r.Shuffle(len(waiting), func(i, j int) { waiting[i], waiting[j] = waiting[j], waiting[i] })
	for _, request := range waiting {
		if faults && m.r.IntN(20) == 0 {
			continue // Lost.
		}
		if !request() {
			m.pending = append(m.pending, request)
		}
	}
}

// run lets a process decide, by what it has in its cache.
func (m *model) run(p *modelProcess, faults bool) {
	if faults && m.r.IntN(120) == 0 {
		p.since, p.state = m.now, "" // A crash, and a start at once.
	}
	if faults && m.r.IntN(50) == 0 {
		p.skew = time.Duration(m.r.Int64N(int64(2*skew))) - skew
	}
	p.secret = m.secrets.seenBy(m.r, p.secret, m.now, cacheLag)
	o := &observed{data: m.secrets[p.secret].value.data, requested: m.secrets[p.secret].value.requested}
	for i := range m.configs {
		p.configs[i] = m.configs[i].seenBy(m.r, p.configs[i], m.now, cacheLag)
		o.bundles = append(o.bundles, m.configs[i][p.configs[i]].value.bundle)
	}
	if state := fmt.Sprint(p.secret, p.configs); state != p.state {
		p.state, p.since, p.wake = state, m.now, m.now
	}
	if m.now < p.wake {
		return
	}
	wall := epoch.Add(m.now + p.skew)
	d := m.rules.decide(o, m.now-p.since, wall)
	if p.wake = m.now + d.after; d.step != idle && m.r.IntN(2) == 0 {
		m.request(*p, o, d.step, wall)
	}
}

// request sends the request of a step. It arrives later.
func (m *model) request(p modelProcess, o *observed, s step, wall time.Time) {
	arrives := m.now + time.Duration(m.r.Int64N(int64(delay)))
	if s == trust {
		if p.secret != len(m.secrets)-1 {
			return // The process reads the Secret before it writes.
		}
		for i := range m.configs {
			m.pending = append(m.pending, func() bool { return m.now >= arrives && m.setBundle(i, p.configs[i], o.data[keyCA]) })
		}
		return
	}
	data, err := m.rules.data(s, o, wall)
	if err != nil {
		panic(err)
	}
	m.pending = append(m.pending, func() bool { return m.now >= arrives && m.setSecret(p.secret, s, data) })
}

func (m *model) setBundle(i, version int, bundle []byte) bool {
	if version == len(m.configs[i])-1 && string(m.configs[i].latest().bundle) != string(bundle) {
		m.configs[i] = append(m.configs[i], versionOf(m.now, modelBundle{bundle: bundle}))
		m.steps[trust]++
	}
	return true
}

func (m *model) setSecret(version int, s step, data map[string][]byte) bool {
	if version != len(m.secrets)-1 {
		return true // A conflict.
	}
	before := m.secrets.latest()
	after := modelSecret{maps.Clone(before.data), before.requested && s != serve && s != issue}
	maps.Copy(after.data, data)
	m.secrets = append(m.secrets, versionOf(m.now, after))
	m.steps[s]++
	return true
}

func versionOf[T any](from time.Duration, value T) version[T] { return version[T]{from, value} }

// sync lets a pod read its volume. It serves the last pair that there was.
func (m *model) sync(p *modelPod) {
	p.at = m.secrets.seenBy(m.r, p.at, m.now, podLag)
	data := m.secrets[p.at].value.data
	if len(data[corev1.TLSCertKey]) > 0 {
		p.served = pair{data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]}
		m.served[string(p.served.cert)] = true
	}
}

// tamper removes caBundle, or requests a renewal.
func (m *model) tamper() {
	if i := m.r.IntN(3); i < 2 {
		m.configs[i] = append(m.configs[i], versionOf(m.now, modelBundle{tampered: true}))
		return
	}
	after := m.secrets.latest()
	after.requested = true
	m.secrets = append(m.secrets, versionOf(m.now, after))
}

// check returns an error if an API server refuses the certificate of a pod. The first issue, when
// pods may have the certificate before the first bundle is written, is not looked at.
func (m *model) check() error {
	if !m.settled {
		return nil
	}
	for i, server := range m.servers {
		for j, at := range server.at {
			trusted := m.configs[j][at].value
			for k, pod := range m.pods {
				if trusted.tampered {
					continue
				}
				if err := m.accepts(trusted.bundle, pod.served); err != nil {
					return fmt.Errorf("after %s, API server %d refuses by configuration %d what pod %d serves: %w", m.now, i, j, k, err)
				}
			}
		}
	}
	return nil
}

func (m *model) accepts(bundle []byte, p pair) error {
	key := [2]string{string(bundle), string(p.cert)}
	now := epoch.Add(m.now)
	if u := m.verified[key]; u != nil {
		if now.Before(u.leaf.NotBefore) || now.After(u.leaf.NotAfter) {
			return x509.CertificateInvalidError{Cert: u.leaf, Reason: x509.Expired}
		}
		return nil
	}
	u, err := p.verify(parse(bundle), m.rules.names(), now)
	m.verified[key] = u
	return err
}

// run lets the first certificate be issued, then many things happen for some months, and at the
// end nothing any more.
func runModel(seed uint64, change func(*Options)) (*model, error) {
	m := newModel(seed, change)
	for range 200 {
		if err := m.tick(false); err != nil {
			return m, err
		}
	}
	m.settled = true
	for range 12 {
		for range 150 {
			if err := m.tick(true); err != nil {
				return m, err
			}
		}
		m.now += time.Duration(m.r.IntN(6*24)) * time.Hour
	}
	for range 400 {
		if err := m.tick(false); err != nil {
			return m, err
		}
	}
	return m, nil
}

const seeds = 8

func TestNoAPIServerRefusesWhatAPodServes(t *testing.T) {
	total := map[step]int{}
	served := 0
	for seed := range uint64(seeds) {
		m, err := runModel(seed, func(*Options) {})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		served += len(m.served)
		for s, n := range m.steps {
			total[s] += n
		}
		last := m.secrets.latest()
		if cas := parse(last.data[keyCA]); len(cas) != 1 || last.requested || len(last.data[keyNextCert]) > 0 {
			t.Errorf("seed %d: at the end there are %d CAs, requested %t, %d bytes staged", seed, len(cas), last.requested, len(last.data[keyNextCert]))
		}
		for i := range m.configs {
			if string(m.configs[i].latest().bundle) != string(last.data[keyCA]) {
				t.Errorf("seed %d: configuration %d has another bundle at the end", seed, i)
			}
		}
	}
	for _, s := range []step{issue, trust, stage, serve, retire} {
		if total[s] < seeds {
			t.Errorf("the step %s happened %d times, too few for %d seeds", s, total[s], seeds)
		}
	}
	t.Logf("%d certificates were served; steps: %v", served, total)
}

// The model finds what the steps and the preconditions are for.
func TestTheModelFindsMistakes(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"a switch before the API servers have the bundle": func(r *Options) { r.Settle = 0 },
		"an old CA removed before the pods have changed":  func(r *Options) { r.Mounted = 0 },
	} {
		found := false
		for seed := uint64(0); seed < seeds && !found; seed++ {
			_, err := runModel(seed, change)
			found = err != nil
		}
		if !found {
			t.Errorf("%s: not found", name)
		}
	}
}
