// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// tlsOptions are the flags of TLS.
type tlsOptions struct {
	minVersion  uint16
	clientCA    string
	clientNames []string
}

func (o *tlsOptions) addFlags(flags *flag.FlagSet) {
	flags.Func("tls-min-version", "minimum TLS version of clients, 1.2 or 1.3 (default 1.2)", func(version string) error {
		known := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
		if o.minVersion = known[version]; o.minVersion == 0 {
			return errors.New("must be 1.2 or 1.3")
		}
		return nil
	})
	flags.StringVar(&o.clientCA, "client-ca", "", "file of CA certificates; if set, a client of the webhooks must present a certificate issued by one of them")
	flags.Func("client-name", "comma-separated common names of the client certificates that --client-ca accepts; all by default", func(names string) error {
		o.clientNames = strings.Split(names, ",")
		return nil
	})
}

// configure sets the versions and the cipher suites that a server accepts: those with forward
// secrecy and AEAD, which are all that TLS 1.3 has.
func (o *tlsOptions) configure(config *tls.Config) {
	config.MinVersion = max(o.minVersion, tls.VersionTLS12)
	config.CipherSuites = []uint16{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	}
	// HTTP/2 would send all requests of an API server to one replica.
	config.NextProtos = []string{"http/1.1"}
}

// webhooks returns the options of the webhook server.
func (o *tlsOptions) webhooks() ([]func(*tls.Config), error) {
	if o.clientCA == "" && len(o.clientNames) > 0 {
		return nil, errors.New("--client-name has no effect without --client-ca: set both, or none")
	}
	return o.withClientCA("--client-ca", o.clientCA, o.clientNames)
}

// withClientCA returns the options of a server that ends the handshake with a client without a
// certificate of a CA in a file, if there is one, and with one of the given common names, if
// there are any.
func (o *tlsOptions) withClientCA(name, file string, commonNames []string) ([]func(*tls.Config), error) {
	options := []func(*tls.Config){o.configure}
	if file == "" {
		return options, nil
	}
	pem, err := os.ReadFile(file) //nolint:gosec // The file is a flag of who starts the process.
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s has no certificate in PEM", name, file)
	}
	return append(options, func(config *tls.Config) {
		config.ClientCAs, config.ClientAuth = pool, tls.RequireAndVerifyClientCert
		config.VerifyConnection = func(state tls.ConnectionState) error {
			if client := state.PeerCertificates[0].Subject.CommonName; len(commonNames) > 0 && !slices.Contains(commonNames, client) {
				return fmt.Errorf("the common name of the client's certificate is %q: %s is expected", client, strings.Join(commonNames, " or "))
			}
			return nil
		}
	}), nil
}

// secureMetrics sets how /metrics is served by TLS.
func (o *options) secureMetrics() (err error) {
	if !o.metrics.SecureServing && (o.metrics.CertDir != "" || o.metricsClientCA != "") {
		return errors.New("--metrics-cert-path and --metrics-client-ca have no effect without --metrics-secure")
	}
	o.metrics.TLSOpts, err = o.tls.withClientCA("--metrics-client-ca", o.metricsClientCA, nil)
	return err
}
