// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"slices"
	"testing"
	"time"
)

// authority is a certificate authority as cert-manager issues it from a Certificate.
type authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

// newAuthority returns the authority of a Certificate, with the key of an earlier one if
// that is not nil.
func newAuthority(t *testing.T, c *certificate, key *ecdsa.PrivateKey) authority {
	t.Helper()
	if key == nil {
		key = newKey(t)
	}
	limits := c.Spec.NameConstraints
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: c.Spec.CommonName}, IsCA: c.Spec.IsCA, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, NotAfter: time.Now().Add(c.Spec.Duration.Duration),
		PermittedDNSDomainsCritical: limits.Critical, PermittedDNSDomains: limits.Permitted.DNSDomains,
	}
	for _, ips := range limits.Excluded.IPRanges {
		_, network, err := net.ParseCIDR(ips)
		if err != nil {
			t.Fatal(err)
		}
		template.ExcludedIPRanges = append(template.ExcludedIPRanges, network)
	}
	return authority{key, sign(t, template, template, &key.PublicKey, key)}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, template, parent *x509.Certificate, of *ecdsa.PublicKey, by *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// leaf returns a serving certificate that the authority signs.
func (a authority) leaf(t *testing.T, names []string, ips ...net.IP) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), DNSNames: names, IPAddresses: ips,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return sign(t, template, a.cert, &newKey(t).PublicKey, a.key)
}

// accepts returns an error if a client that trusts the authority, as the API server does,
// refuses a server that has this certificate and this name or address.
func (a authority) accepts(leaf *x509.Certificate, host string) error {
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
	return err
}

// The root signs certificates of our Services only, so its key is of no use for other
// names.
func TestTheRootIsConstrained(t *testing.T) {
	objects := install(t)
	root := find[*certificate](t, objects, "modelbox-root")
	ca := newAuthority(t, root, nil)
	for _, c := range each[*certificate](slices.Concat(objects, with(t, controllerTLS))) {
		if c.Spec.IssuerRef.Name != "modelbox-ca" {
			continue
		}
		leaf := ca.leaf(t, c.Spec.DNSNames)
		for _, name := range c.Spec.DNSNames {
			if err := ca.accepts(leaf, name); err != nil {
				t.Errorf("Certificate %s is not accepted as %s; add the name to nameConstraints in certs/root.yaml: %v", c.Name, name, err)
			}
		}
	}
	for _, name := range []string{
		"kubernetes.default.svc", "kubernetes", "api.example.com", "svc", "xmodelbox-system.svc", "modelbox-webhook.xmodelbox-system.svc",
		"modelbox-webhook.other.svc", "modelbox-webhook.modelbox-system.svc.example.com", "cert-manager-webhook.cert-manager.svc",
	} {
		if ca.accepts(ca.leaf(t, []string{name}), name) == nil {
			t.Errorf("a certificate of %s that the root has signed is accepted", name)
		}
	}
	for _, ip := range []string{"10.96.0.1", "127.0.0.1", "::1", "2001:db8::1"} {
		if ca.accepts(ca.leaf(t, root.Spec.NameConstraints.Permitted.DNSDomains, net.ParseIP(ip)), ip) == nil {
			t.Errorf("a certificate of %s that the root has signed is accepted", ip)
		}
	}
}
