// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates makes certificates for tests.
package certificates

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// New returns a self-signed certificate with a common name, and its key, both as PEM.
// The certificate is valid for as many hours as its serial number.
func New(name string, serial int) (cert, key []byte) {
	private := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(serial)), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"webhook.test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Duration(serial) * time.Hour),
	}
	return sign(template, template, private, private), encode(private)
}

// NewServer returns a self-signed certificate for a host, and its key, both as PEM. The
// certificate is valid for a day.
func NewServer(host string) (cert, key []byte) {
	private := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "models"}, DNSNames: []string{host},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(24 * time.Hour),
	}
	return sign(template, template, private, private), encode(private)
}

// NewClient returns a CA, and a client certificate with a common name that it has signed, with
// its key, all as PEM. They are valid for an hour.
func NewClient(name string) (ca, cert, key []byte) {
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{
			SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
		}
	}
	authority, client := template("ca of "+name), template(name)
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	signer, private := newKey(), newKey()
	return sign(authority, authority, signer, signer), sign(client, authority, private, signer), encode(private)
}

func newKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return key
}

func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encode(key *ecdsa.PrivateKey) []byte {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}
