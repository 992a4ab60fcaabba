// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// cipherSuites are those for TLS 1.2: with forward secrecy, and AEAD. TLS 1.3 has only such.
var cipherSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// TLSVersion is the lowest version of TLS that a server accepts. The zero value is 1.2. It is
// a flag.Value.
type TLSVersion uint16

// String returns the version as Set reads it.
func (v *TLSVersion) String() string {
	if *v == tls.VersionTLS13 {
		return "1.3"
	}
	return "1.2"
}

// Set sets the version from "1.2" or "1.3". It also accepts the values that the flags of
// Kubernetes' components have, VersionTLS12 and VersionTLS13.
func (v *TLSVersion) Set(text string) error {
	switch text {
	case "1.2", "VersionTLS12":
		*v = tls.VersionTLS12
	case "1.3", "VersionTLS13":
		*v = tls.VersionTLS13
	default:
		return errors.New("must be 1.2 or 1.3")
	}
	return nil
}

// Configure sets the versions, the cipher suites and the protocol of a server.
func (v *TLSVersion) Configure(config *tls.Config) {
	config.MinVersion = max(uint16(*v), tls.VersionTLS12)
	config.CipherSuites = cipherSuites
	config.NextProtos = []string{"http/1.1"}
}

// ClientCA requires clients to have a certificate.
type ClientCA struct {
	bundle *dynamiccertificates.DynamicFileCAContent
	names  []string
}

// NewClientCA returns a ClientCA that accepts certificates for client authentication that a
// CA in the PEM file has signed; if there are names, only those with one of them as the common
// name. It returns an error if the file cannot be read or has no certificate.
func NewClientCA(file string, names []string) (*ClientCA, error) {
	bundle, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of client certificates: %w", err)
	}
	return &ClientCA{bundle: bundle, names: names}, nil
}

// Run reads the file again when it changes, within a minute, until ctx is done. A file that
// cannot be used is logged, and the CAs in use stay.
func (ca *ClientCA) Run(ctx context.Context) { ca.bundle.Run(ctx, 1) }

// Configure makes a server end the handshake with a client that has no such certificate.
func (ca *ClientCA) Configure(config *tls.Config) {
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = ca.verify
}

func (ca *ClientCA) verify(state tls.ConnectionState) error {
	opts, ok := ca.bundle.VerifyOptions()
	if !ok || len(state.PeerCertificates) == 0 {
		return errors.New("the client has no certificate, or no CA is loaded")
	}
	client := state.PeerCertificates[0]
	opts.Intermediates = x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	if _, err := client.Verify(opts); err != nil {
		return fmt.Errorf("the client's certificate: %w", err)
	}
	if len(ca.names) > 0 && !slices.Contains(ca.names, client.Subject.CommonName) {
		return fmt.Errorf("the common name of the client's certificate is %q: %s is expected",
			client.Subject.CommonName, strings.Join(ca.names, " or "))
	}
	return nil
}
