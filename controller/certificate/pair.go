// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package certificate

import (
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

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

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
	_, all4, _ := net.ParseCIDR("0.0.0.0/0")
	_, all6, _ := net.ParseCIDR("::/0")
	ca.ExcludedIPRanges = []*net.IPNet{all4, all6}
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
