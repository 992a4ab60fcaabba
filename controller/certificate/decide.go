// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// The keys of the Secret, and its annotation.
const (
	// keyCA is the bundle of the CAs that the API servers trust, in PEM.
	keyCA = "ca.crt"
	// keyNextCert and keyNextKey are the pair that will be served next.
	keyNextCert, keyNextKey = "next.crt", "next.key"
	// AnnotationRenew requests a renewal, whatever its value. It is removed when the new
	// certificate is the one that is served.
	AnnotationRenew = "modelbox-operator/renew-certificate"
)

const (
	// settle is longer than an API server needs to receive a webhook configuration: its informer
	// usually takes milliseconds, and a watch that was interrupted some seconds.
	settle = time.Minute
	// mounted is longer than the pods need to serve a changed Secret. kubelet looks at a volume
	// every 60 to 90 s, with a Secret that may be cached for 5 minutes in a large cluster; the
	// pod reads the files every 10 s.
	mounted = 10 * time.Minute
)

// step is what is to be done next.
type step string

const (
	idle   step = ""       // Nothing, until a time.
	issue  step = "issue"  // A new pair at once, because what the Secret has cannot be served.
	trust  step = "trust"  // The bundle ca.crt into both webhook configurations.
	stage  step = "stage"  // A new pair beside the one that is served, and its CA in ca.crt.
	serve  step = "serve"  // The staged pair becomes the one that is served.
	retire step = "retire" // A bundle ca.crt with the CA of the pair that is served only.
)

// decision is the next step. With idle it says after which time to decide again; otherwise why
// the step is due.
type decision struct {
	step   step
	reason string
	after  time.Duration
}

// observed is what the API server has: the Secret, and caBundle of each webhook of the
// configurations that exist.
type observed struct {
	data      map[string][]byte
	requested bool
	bundles   [][]byte
}

func (o *observed) serving() pair {
	return pair{o.data[corev1.TLSCertKey], o.data[corev1.TLSPrivateKeyKey]}
}
func (o *observed) next() pair { return pair{o.data[keyNextCert], o.data[keyNextKey]} }

// trusted reports whether each webhook has the bundle of the Secret.
func (o *observed) trusted() bool {
	return !slices.ContainsFunc(o.bundles, func(bundle []byte) bool { return !bytes.Equal(bundle, o.data[keyCA]) })
}

// rules are what decisions depend on beside what is observed.
type rules struct {
	// names are the DNS names that the API server calls the webhook by.
	names           []string
	validity        time.Duration
	settle, mounted time.Duration
}

// decide returns the next step. The state has lasted for the given time, by a clock that does
// not jump; now is the time of day, which is compared with the validity of certificates only.
func (r *rules) decide(o *observed, lasted time.Duration, now time.Time) decision {
	cas := parse(o.data[keyCA])
	current, err := o.serving().verify(cas, r.names, now)
	switch {
	case err != nil:
		return decision{step: issue, reason: err.Error()}
	case !o.trusted():
		return decision{step: trust, reason: "a webhook has another caBundle"}
	case len(o.data[keyNextCert])+len(o.data[keyNextKey]) > 0:
		if _, err := o.next().verify(cas, r.names, now); err != nil {
			return decision{step: stage, reason: "the staged pair cannot be served: " + err.Error()}
		}
		if lasted < r.settle {
			return decision{after: r.settle - lasted}
		}
		return decision{step: serve, reason: "both configurations have its CA"}
	}
	return r.decideServed(o, current, lasted, now)
}

// decideServed returns the next step if no pair is staged.
func (r *rules) decideServed(o *observed, current *usable, lasted time.Duration, now time.Time) decision {
	oldCAs := !bytes.Equal(o.data[keyCA], encode(current.ca))
	due := current.due(now, r.validity)
	switch {
	case oldCAs && lasted >= r.mounted:
		return decision{step: retire, reason: "the previous CA is no longer in use"}
	case o.requested:
		return decision{step: stage, reason: "the annotation " + AnnotationRenew + " requests it"}
	case !now.Before(due):
		return decision{step: stage, reason: "the certificate is due"}
	case oldCAs:
		return decision{after: min(r.mounted-lasted, due.Sub(now))}
	}
	return decision{after: due.Sub(now)}
}

// write returns the data that a step changes in the Secret; nil removes a key.
func (r *rules) write(s step, o *observed, now time.Time) (map[string][]byte, error) {
	switch s {
	case issue:
		p, ca, err := newPair(r.names, now, r.validity)
		return map[string][]byte{
			corev1.TLSCertKey: p.cert, corev1.TLSPrivateKeyKey: p.key, keyNextCert: nil, keyNextKey: nil,
			// Pods may still serve a certificate of a CA that the API servers trust.
			keyCA: bundleOf(ca, now, append([][]byte{o.data[keyCA]}, o.bundles...)...),
		}, err
	case stage:
		p, ca, err := newPair(r.names, now, r.validity)
		current, _ := o.serving().verify(parse(o.data[keyCA]), r.names, now)
		return map[string][]byte{
			keyNextCert: p.cert, keyNextKey: p.key, keyCA: bundleOf(encode(current.ca), now, ca, o.data[keyCA]),
		}, err
	case serve:
		next := o.next()
		return map[string][]byte{corev1.TLSCertKey: next.cert, corev1.TLSPrivateKeyKey: next.key, keyNextCert: nil, keyNextKey: nil}, nil
	}
	current, err := o.serving().verify(parse(o.data[keyCA]), r.names, now)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{keyCA: encode(current.ca)}, nil
}
