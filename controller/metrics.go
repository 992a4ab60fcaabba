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

// metricsOptions are the flags that protect /metrics. They have the names that kubebuilder
// gives them.
type metricsOptions struct {
	secure bool
	// certPath is a folder, certName and certKey are files in it.
	certPath, certName, certKey string
}

func (o *metricsOptions) addFlags(flags *flag.FlagSet) {
	flags.BoolVar(&o.secure, "metrics-secure", false, "serve /metrics over TLS to clients whose token may get the URL /metrics; "+
		"requires the right to create tokenreviews and subjectaccessreviews")
	flags.StringVar(&o.certPath, "metrics-cert-path", "", "the folder of the certificate for --metrics-secure; self-signed if empty")
	flags.StringVar(&o.certName, "metrics-cert-name", "tls.crt", "the file of the certificate in --metrics-cert-path")
	flags.StringVar(&o.certKey, "metrics-cert-key", "tls.key", "the file of the private key in --metrics-cert-path")
}

// serverOptions returns the options of the metrics server. It returns an error if the
// certificate is missing: controller-runtime would use a self-signed one instead, which
// clients refuse for a reason that is hard to find.
func (o *metricsOptions) serverOptions(address string) (metricsserver.Options, error) {
	options := metricsserver.Options{BindAddress: address}
	if !o.secure {
		if o.certPath != "" {
			return options, errors.New("--metrics-cert-path has no effect without --metrics-secure: set both, or none")
		}
		return options, nil
	}
	options.SecureServing = true
	options.FilterProvider = filters.WithAuthenticationAndAuthorization
	options.TLSOpts = []func(*tls.Config){metricsTLS}
	if o.certPath == "" {
		return options, nil
	}
	for _, name := range []string{o.certName, o.certKey} {
		if _, err := os.Stat(filepath.Join(o.certPath, name)); err != nil {
			return options, fmt.Errorf("--metrics-cert-path: %w", err)
		}
	}
	options.CertDir, options.CertName, options.KeyName = o.certPath, o.certName, o.certKey
	return options, nil
}

// metricsTLS sets what the metrics server accepts. It speaks no HTTP/2, which a scrape has
// no use for, and whose streams cost more than the client that opens them pays.
func metricsTLS(config *tls.Config) {
	config.MinVersion = tls.VersionTLS12
	config.NextProtos = []string{"http/1.1"}
}
