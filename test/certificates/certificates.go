// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package certificates makes serving certificates for tests.
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
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(serial)), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"webhook.test"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Duration(serial) * time.Hour),
	}
	certDER, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certDER}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})
}
