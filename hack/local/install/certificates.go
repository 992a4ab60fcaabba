// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const (
	// certificatesLast is the validity of the certificates. It is long enough, because
	// they are created again at each start.
	certificatesLast = 365 * 24 * time.Hour
	// clockSkew is for a clock that is set back after their creation.
	clockSkew = time.Hour
)

// Certificates creates a certificate authority and a certificate for 127.0.0.1 and
// localhost that it signs. It writes this certificate to dir as tls.crt and tls.key
// (readable by their owner only), and returns the authority's certificate in PEM. The
// authority's key is not stored.
func Certificates(dir string) (caBundle []byte, err error) {
	ca, caKey, err := newCA()
	if err != nil {
		return nil, fmt.Errorf("creating a certificate authority: %w", err)
	}
	leaf, key, err := newLeaf(ca, caKey)
	if err != nil {
		return nil, fmt.Errorf("creating a certificate: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the certificates' directory: %w", err)
	}
	for name, content := range map[string][]byte{"tls.crt": leaf, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing a certificate: %w", err)
		}
	}
	return encode("CERTIFICATE", ca.Raw), nil
}

func newCA() (*x509.Certificate, *ecdsa.PrivateKey, error) {
	template, err := certificate("modelbox-local-ca")
	if err != nil {
		return nil, nil, err
	}
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.MaxPathLenZero = true
	template.KeyUsage = x509.KeyUsageCertSign
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(der)
	return ca, key, err
}

// newLeaf returns a server's certificate and its key, both in PEM.
func newLeaf(ca *x509.Certificate, caKey *ecdsa.PrivateKey) (leafPEM, keyPEM []byte, err error) {
	template, err := certificate("modelbox-webhook")
	if err != nil {
		return nil, nil, err
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca, key.Public(), caKey)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", keyDER), nil
}

func certificate(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(certificatesLast),
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
