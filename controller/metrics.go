// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// bindMetrics adds the flags that protect /metrics. They have the names that kubebuilder gives them.
func bindMetrics(flags *flag.FlagSet, o *metricsserver.Options) {
	flags.BoolVar(&o.SecureServing, "metrics-secure", false, "serve /metrics by TLS, to clients whose token may get the URL /metrics; "+
		"requires permission to create tokenreviews and subjectaccessreviews")
	flags.StringVar(&o.CertDir, "metrics-cert-path", "", "directory of the certificate for --metrics-secure, read again when it changes; self-signed if empty")
	flags.StringVar(&o.CertName, "metrics-cert-name", "tls.crt", "file of the certificate in --metrics-cert-path")
	flags.StringVar(&o.KeyName, "metrics-cert-key", "tls.key", "file of the private key in --metrics-cert-path")
}

// metricsServer returns the options of the metrics server. It returns an error if the certificate
// is missing: controller-runtime would use a self-signed one instead, which clients refuse for a
// reason that is hard to find.
func (o *options) metricsServer() (metricsserver.Options, error) {
	server := o.metrics
	server.BindAddress = o.metricsAddress
	if !server.SecureServing {
		if server.CertDir != "" {
			return server, errors.New("--metrics-cert-path has no effect without --metrics-secure: set both, or none")
		}
		return server, nil
	}
	server.FilterProvider = filters.WithAuthenticationAndAuthorization
	server.TLSOpts = []func(*tls.Config){metricsTLS}
	if server.CertDir != "" {
		for _, name := range []string{server.CertName, server.KeyName} {
			if _, err := os.Stat(filepath.Join(server.CertDir, name)); err != nil {
				return server, fmt.Errorf("--metrics-cert-path: %w", err)
			}
		}
	}
	return server, nil
}

// metricsTLS sets what the metrics server accepts: no HTTP/2, which a scrape does not need, and
// whose streams cost the server more than the client.
func metricsTLS(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.NextProtos = []string{"http/1.1"}
}
