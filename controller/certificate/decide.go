// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// The keys of the Secret, and its annotation.
const (
	// keyCA is the bundle of the CAs that the API servers trust, in PEM.
	keyCA = "ca.crt"
	// keyNextCert and keyNextKey are the pair that will be served next.
	keyNextCert, keyNextKey = "next.crt", "next.key"
	// AnnotationRenew requests a renewal, whatever its value. It is removed when the new
	// certificate is the one that is served.
	AnnotationRenew = "modelbox-operator.github.io/renew-certificate"
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

// decide returns the next step. The state has lasted for the given time, by a clock that does
// not jump; now is the time of day, which is compared with the validity of certificates only.
func (r *Options) decide(o *observed, lasted time.Duration, now time.Time) decision {
	cas := parse(o.data[keyCA])
	current, err := o.serving().verify(cas, r.names(), now)
	switch {
	case err != nil:
		return decision{step: issue, reason: err.Error()}
	case slices.ContainsFunc(o.bundles, func(bundle []byte) bool { return !bytes.Equal(bundle, o.data[keyCA]) }):
		return decision{step: trust, reason: "a webhook has another caBundle"}
	case len(o.data[keyNextCert])+len(o.data[keyNextKey]) > 0:
		if _, err := o.next().verify(cas, r.names(), now); err != nil {
			return decision{step: stage, reason: "the staged pair cannot be served: " + err.Error()}
		}
		if lasted < r.Settle {
			return decision{after: r.Settle - lasted}
		}
		return decision{step: serve, reason: "both configurations have its CA"}
	}
	return r.decideServed(o, current, lasted, now)
}

// decideServed returns the next step if no pair is staged.
func (r *Options) decideServed(o *observed, current *usable, lasted time.Duration, now time.Time) decision {
	oldCAs := !bytes.Equal(o.data[keyCA], encode(current.ca))
	due := current.due(now, r.Validity)
	switch {
	case oldCAs && lasted >= r.Mounted:
		return decision{step: retire, reason: "the previous CA is no longer in use"}
	case o.requested:
		return decision{step: stage, reason: "the annotation " + AnnotationRenew + " requests it"}
	case !now.Before(due):
		return decision{step: stage, reason: "the certificate is due"}
	case oldCAs:
		return decision{after: min(r.Mounted-lasted, due.Sub(now))}
	}
	return decision{after: due.Sub(now)}
}

// data returns the data that a step changes in the Secret; nil removes a key.
func (r *Options) data(s step, o *observed, now time.Time) (map[string][]byte, error) {
	if s == serve {
		next := o.next()
		return map[string][]byte{corev1.TLSCertKey: next.cert, corev1.TLSPrivateKeyKey: next.key, keyNextCert: nil, keyNextKey: nil}, nil
	}
	current, _ := o.serving().verify(parse(o.data[keyCA]), r.names(), now) // Only issue is decided where it does not verify.
	if s == retire {
		return map[string][]byte{keyCA: encode(current.ca)}, nil
	}
	p, ca, err := newPair(r.names(), now, r.Validity)
	if s == stage {
		return map[string][]byte{keyNextCert: p.cert, keyNextKey: p.key, keyCA: bundleOf(encode(current.ca), now, ca, o.data[keyCA])}, err
	}
	return map[string][]byte{
		corev1.TLSCertKey: p.cert, corev1.TLSPrivateKeyKey: p.key, keyNextCert: nil, keyNextKey: nil,
		// Pods may still serve a certificate of a CA that the API servers trust.
		keyCA: bundleOf(ca, now, append([][]byte{o.data[keyCA]}, o.bundles...)...),
	}, err
}

const (
	// backdated is how much earlier than now a certificate begins to be valid, so that clocks
	// may differ by that.
	backdated = time.Hour
	// caPrefix is what the common name of each CA of this package begins with.
	caPrefix = "modelbox-webhook-ca@"
)

// pair is a serving certificate with its key, in PEM.
type pair struct{ cert, key []byte }

// newPair returns a serving certificate for DNS names, and the CA that signed it, in PEM. The CA
// has no other certificate: its key is not returned. It is limited to the names, because an
// administrator could add it to other trust stores.
func newPair(names []string, now time.Time, validity time.Duration) (pair, []byte, error) {
	// Without a serial number, x509 generates a random one.
	valid := x509.Certificate{NotBefore: now.Add(-backdated).UTC(), NotAfter: now.Add(validity).UTC(), BasicConstraintsValid: true}
	ca, leaf := valid, valid
	ca.Subject.CommonName = fmt.Sprintf("%s%d", caPrefix, now.Unix())
	ca.IsCA, ca.MaxPathLenZero, ca.KeyUsage = true, true, x509.KeyUsageCertSign
	ca.PermittedDNSDomainsCritical, ca.PermittedDNSDomains = true, names
	ca.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	leaf.Subject, leaf.DNSNames = pkix.Name{CommonName: "modelbox-webhook"}, names
	leaf.KeyUsage, leaf.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	authority, caKey, err := sign(&ca, &ca, nil)
	if err != nil {
		return pair{}, nil, fmt.Errorf("signing the CA: %w", err)
	}
	signed, key, err := sign(&leaf, authority, caKey)
	if err != nil {
		return pair{}, nil, fmt.Errorf("signing the serving certificate: %w", err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	return pair{encode(signed), encoded}, encode(authority), err
}

// sign returns a certificate with a new key, signed by another key, or by its own if that is nil.
func sign(template, parent *x509.Certificate, by *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), cmp.Or(by, key))
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.ParseCertificate(der)
	return signed, key, err
}

func encode(certs ...*x509.Certificate) []byte {
	encoded, _ := cert.EncodeCertificates(certs...) // It fails only if the writer, a buffer, does.
	return encoded
}

// usable is a pair that verifies: its certificate, and the CA that signed it.
type usable struct{ leaf, ca *x509.Certificate }

// verify returns a pair whose key fits, and whose certificate an API server with these CAs
// accepts for all names at the time. Otherwise the error says why not.
func (p pair) verify(cas []*x509.Certificate, names []string, now time.Time) (*usable, error) {
	if len(p.cert) == 0 || len(p.key) == 0 {
		return nil, errors.New("certificate or key is missing")
	}
	loaded, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return nil, err
	}
	if begins := loaded.Leaf.NotBefore; begins.After(now) && !begins.After(now.Add(backdated)) {
		now = begins // The clock of this process is behind that of an earlier leader.
	}
	options := x509.VerifyOptions{Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now}
	for _, ca := range cas {
		options.Roots.AddCert(ca)
	}
	for _, der := range loaded.Certificate[1:] {
		if intermediate, err := x509.ParseCertificate(der); err == nil {
			options.Intermediates.AddCert(intermediate)
		}
	}
	var found *usable
	for _, options.DNSName = range names {
		chains, err := loaded.Leaf.Verify(options)
		if err != nil {
			return nil, err
		}
		found = &usable{loaded.Leaf, chains[0][len(chains[0])-1]}
	}
	return found, nil
}

// due is when the pair is to be renewed: after two thirds of its validity; at once if it is not
// of this package, such as one of cert-manager, or is valid for longer than a new one would be,
// also by the clock of another leader.
func (u *usable) due(now time.Time, validity time.Duration) time.Time {
	if !strings.HasPrefix(u.ca.Subject.CommonName, caPrefix) || u.leaf.NotAfter.After(now.Add(validity+2*backdated)) {
		return now
	}
	return u.leaf.NotAfter.Add(-u.leaf.NotAfter.Sub(u.leaf.NotBefore) / 3)
}

// parse returns the certificates in PEM, and none if a part of it cannot be parsed.
func parse(bundle []byte) []*x509.Certificate {
	certs, err := cert.ParseCertsPEM(bundle)
	if err != nil {
		return nil
	}
	return certs
}

// maxCAs bounds a bundle. A renewal that is requested every minute has fewer.
const maxCAs = 16

// bundleOf returns a CA, and behind it the others that are valid, each of them once.
func bundleOf(ca []byte, now time.Time, others ...[]byte) []byte {
	certs := parse(ca)
	for _, other := range others {
		for _, c := range parse(other) {
			if c.IsCA && now.Before(c.NotAfter) && len(certs) < maxCAs && !slices.ContainsFunc(certs, c.Equal) {
				certs = append(certs, c)
			}
		}
	}
	return encode(certs...)
}
