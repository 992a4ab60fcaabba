// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/certificates"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// handshake returns why a server with the options refuses a client, nil if it does not.
func handshake(t *testing.T, options []func(*tls.Config), client *tls.Config) error {
	t.Helper()
	pair, err := tls.X509KeyPair(certificates.New("webhook", 1))
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	for _, option := range options {
		option(config)
	}
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		client.InsecureSkipVerify = true
		conn := tls.Client(there, client)
		_ = conn.Handshake()
		_, _ = conn.Read(make([]byte, 1)) // Of TLS 1.3, what comes after the handshake.
	}()
	return tls.Server(here, config).HandshakeContext(t.Context())
}

// TLS 1.2 is accepted with forward secrecy and AEAD alone, and --tls-min-version=1.3 refuses it.
func TestTLSVersionsAndCipherSuites(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		min, version uint16
		want         bool
	}{
		{0, tls.VersionTLS11, false}, {0, tls.VersionTLS12, true}, {0, tls.VersionTLS13, true},
		{tls.VersionTLS13, tls.VersionTLS12, false}, {tls.VersionTLS13, tls.VersionTLS13, true},
	} {
		o := tlsOptions{minVersion: test.min}
		client := &tls.Config{MinVersion: test.version, MaxVersion: test.version}
		if err := handshake(t, []func(*tls.Config){o.configure}, client); (err == nil) != test.want {
			t.Errorf("min-version %s: %s: %v", tls.VersionName(test.min), tls.VersionName(test.version), err)
		}
	}
	tested := 0
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if suite.SupportedVersions[0] == tls.VersionTLS13 || strings.HasPrefix(suite.Name, "TLS_ECDHE_RSA") {
			continue // TLS 1.3 has no others, and the certificate is of ECDSA.
		}
		tested++
		want := strings.HasPrefix(suite.Name, "TLS_ECDHE_ECDSA") && (strings.Contains(suite.Name, "_GCM_") || strings.Contains(suite.Name, "_POLY1305_"))
		client := &tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}}
		if err := handshake(t, []func(*tls.Config){new(tlsOptions).configure}, client); (err == nil) != want {
			t.Errorf("%s: %v, want it accepted: %t", suite.Name, err, want)
		}
	}
	if tested < 8 {
		t.Errorf("only %d cipher suites were tested", tested)
	}
}

// Only a client with a certificate of the CA, and with the right name, is accepted.
func TestClientCA(t *testing.T) {
	t.Parallel()
	ca, cert, key := certificates.NewClient("kube-apiserver")
	_, otherCert, otherKey := certificates.NewClient("kube-apiserver")
	serverCert, serverKey := certificates.New("kube-apiserver", 1)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	certificate := func(cert, key []byte) []tls.Certificate {
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{pair}
	}
	for name, test := range map[string]struct {
		names, want string
		certs       []tls.Certificate
	}{
		"none":                  {"", "didn't provide a certificate", nil},
		"the CA's":              {"", "", certificate(cert, key)},
		"the CA's, with a name": {"front-proxy,kube-apiserver", "", certificate(cert, key)},
		"the CA's, of another":  {"front-proxy", `"kube-apiserver": front-proxy is expected`, certificate(cert, key)},
		"of another CA":         {"", "unknown authority", certificate(otherCert, otherKey)},
		"self-signed":           {"", "didn't provide a certificate", certificate(serverCert, serverKey)},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			o := tlsOptions{clientCA: file}
			if test.names != "" {
				o.clientNames = strings.Split(test.names, ",")
			}
			options, err := o.webhooks()
			if err != nil {
				t.Fatal(err)
			}
			err = handshake(t, options, &tls.Config{Certificates: test.certs, MaxVersion: version})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %s: %v, want %q", name, tls.VersionName(version), err, test.want)
			}
		}
	}
	for _, o := range []tlsOptions{{clientNames: []string{"a"}}, {clientCA: file + "x"}, {clientCA: os.Args[0]}} {
		if _, err := o.webhooks(); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

// clientFiles are the files of a client certificate and of its CA.
type clientFiles struct {
	testenv.ClientCertificate
	CA string
}

func newClientFiles() clientFiles {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	ca, cert, key := certificates.NewClient("kube-apiserver")
	files := clientFiles{testenv.ClientCertificate{Cert: filepath.Join(dir, "client.crt"), Key: filepath.Join(dir, "client.key")}, filepath.Join(dir, "ca.crt")}
	for file, data := range map[string][]byte{files.CA: ca, files.Cert: cert, files.Key: key} {
		Expect(os.WriteFile(file, data, 0o600)).To(Succeed())
	}
	return files
}

// review sends a review to the webhook process, with a client certificate if there is one.
func review(certs ...tls.Certificate) error {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}}
	address := net.JoinHostPort(env.Webhooks.LocalServingHost, strconv.Itoa(env.Webhooks.LocalServingPort))
	answer, err := (&http.Client{Transport: transport}).Post("https://"+address+unitedDeploymentPath, "application/json", strings.NewReader(unitedDeployment))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

var _ = It("a process with --client-ca answers the API server that presents its certificate, and refuses others", func(ctx context.Context) {
	stop()
	start(func(o *options) { o.tls.clientCA, o.tls.clientNames = clients.CA, []string{"kube-apiserver"} })
	DeferCleanup(func() {
		stop()
		start(nil)
	})
	before := calls(ctx)
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-certificate"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1.27"}}
	Eventually(func() error { return env.Client.Create(ctx, box.DeepCopy(), client.DryRunAll) }).Should(Succeed())
	Expect(calls(ctx)).To(BeNumerically(">=", before+2), "both webhooks were called")

	Expect(review()).To(MatchError(ContainSubstring("tls:")))
	pair, err := tls.LoadX509KeyPair(clients.Cert, clients.Key)
	Expect(err).NotTo(HaveOccurred())
	Expect(review(pair)).To(Succeed())
})
