// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command modelserver serves the models of the end-to-end suite, in its cluster: over HTTP, and
// over HTTPS where it has a certificate.
package main

import (
	"flag"
	"log"
	"net/http"
	"time"

	"github.com/modelbox-operator/modelbox-operator/test/modelserver"
)

// Its pods run as any user, who may not listen on lower ports.
const (
	httpAddress  = ":8080"
	httpsAddress = ":8443"
)

func main() {
	var options modelserver.Options
	var cert, key string
	flag.DurationVar(&options.Slow, "slow", 30*time.Second, "how long a file below /slow/ takes")
	flag.DurationVar(&options.Paced, "paced", 2*time.Second, "how long a file below /paced/ takes")
	flag.StringVar(&options.Token, "token", "", "the bearer token that /private/ requires")
	flag.StringVar(&options.Plain, "plain", "", "the host of the http:// URLs")
	flag.StringVar(&cert, "tls-cert", "", "the file with the certificate; without it there is no HTTPS")
	flag.StringVar(&key, "tls-key", "", "the file with its key")
	flag.Parse()
	handler := modelserver.New(options)
	ended := make(chan error)
	go func() { ended <- server(httpAddress, handler).ListenAndServe() }()
	if cert != "" {
		go func() { ended <- server(httpsAddress, handler).ListenAndServeTLS(cert, key) }()
	}
	log.Fatal(<-ended)
}

// server has no limit for a whole response, which may be slow on purpose.
func server(address string, handler http.Handler) *http.Server {
	return &http.Server{Addr: address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
}
