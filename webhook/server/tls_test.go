// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMinTLSVersion(t *testing.T) {
	t.Parallel()
	s := runReady(t, Options{MinTLSVersion: tls.VersionTLS13}, nil)
	for version, want := range map[uint16]bool{tls.VersionTLS12: false, tls.VersionTLS13: true} {
		if _, _, err := s.dial(&tls.Config{MinVersion: version, MaxVersion: version}); (err == nil) != want {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

func TestTLSVersionFlag(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1.2": "1.2", "1.3": "1.3", "VersionTLS12": "1.2", "VersionTLS13": "1.3", "1.1": "", "VersionTLS11": "", "": "",
	} {
		var v TLSVersion
		if err := v.Set(text); (err == nil) != (want != "") || want != "" && v.String() != want {
			t.Errorf("%q: %s, %v", text, v.String(), err)
		}
	}
}

// TestCipherSuites: of TLS 1.2, only suites with forward secrecy and AEAD are accepted.
func TestCipherSuites(t *testing.T) {
	t.Parallel()
	s := runReady(t, Options{}, nil)
	for _, suite := range append(tls.CipherSuites(), tls.InsecureCipherSuites()...) {
		if suite.SupportedVersions[0] == tls.VersionTLS13 || strings.Contains(suite.Name, "_RSA_") && strings.Contains(suite.Name, "ECDHE") {
			continue // The version has no others; the certificate is not of this type.
		}
		want := strings.HasPrefix(suite.Name, "TLS_ECDHE_ECDSA") && (strings.Contains(suite.Name, "_GCM_") || strings.Contains(suite.Name, "_POLY1305_"))
		_, _, err := s.dial(&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite.ID}})
		if (err == nil) != want {
			t.Errorf("%s: %v, want it accepted: %v", suite.Name, err, want)
		}
	}
}

// authority is a CA of client certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.cert, a.key = a.sign(template, nil)
	return a
}

func (a *authority) sign(template *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	parent, parentKey := template, key
	if by != nil {
		parent, parentKey = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// client returns the certificate of a client with a common name.
func (a *authority) client(name string, usage x509.ExtKeyUsage, until time.Time) tls.Certificate {
	a.t.Helper()
	cert, key := a.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Unix(0, 0), NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}, a)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// write writes the certificates of CAs to a file.
func write(t *testing.T, file string, authorities ...*authority) {
	t.Helper()
	var data []byte
	for _, a := range authorities {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})...)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// ping sends a request with a client certificate, if there is one, and returns the error.
func (r *running) ping(version uint16, certs ...tls.Certificate) error {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: certs, MaxVersion: version,
	}}
	answer, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get(r.url("/hello"))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("answered %s", answer.Status)
	}
	return nil
}

// TestClientCA: only a client with a certificate of the CA is answered, and the file is read
// again.
func TestClientCA(t *testing.T) {
	t.Parallel()
	ours, theirs, file := newAuthority(t), newAuthority(t), filepath.Join(t.TempDir(), "ca.crt")
	write(t, file, ours)
	s := runReady(t, Options{ClientCA: file, ClientNames: []string{"kube-apiserver", "other"}}, hello)
	later := time.Now().Add(time.Hour)
	for name, tc := range map[string]struct {
		certs []tls.Certificate
		want  bool
	}{
		"no certificate":     {nil, false},
		"the CA's":           {[]tls.Certificate{ours.client("kube-apiserver", x509.ExtKeyUsageClientAuth, later)}, true},
		"another name":       {[]tls.Certificate{ours.client("kubelet", x509.ExtKeyUsageClientAuth, later)}, false},
		"a server's":         {[]tls.Certificate{ours.client("kube-apiserver", x509.ExtKeyUsageServerAuth, later)}, false},
		"an expired one":     {[]tls.Certificate{ours.client("kube-apiserver", x509.ExtKeyUsageClientAuth, time.Unix(1, 0))}, false},
		"that of another CA": {[]tls.Certificate{theirs.client("kube-apiserver", x509.ExtKeyUsageClientAuth, later)}, false},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if err := s.ping(version, tc.certs...); (err == nil) != tc.want {
				t.Errorf("%s, %s: %v", name, tls.VersionName(version), err)
			}
		}
	}
	write(t, file, ours, theirs)
	eventually(t, "the other CA is accepted", func() bool {
		return s.ping(tls.VersionTLS13, theirs.client("other", x509.ExtKeyUsageClientAuth, later)) == nil
	})
}

func TestClientCAMissing(t *testing.T) {
	t.Parallel()
	err := New(Options{Addr: "127.0.0.1:0", ClientCA: filepath.Join(t.TempDir(), "ca.crt")}).Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "reading the CA of client certificates") {
		t.Errorf("Start: %v", err)
	}
}

// TestLimitListener: a new client is answered although others have all connections.
func TestLimitListener(t *testing.T) {
	t.Parallel()
	raw, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: hello["/hello"]}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(LimitListener(raw, "test", 3)) }()
	for range 9 {
		conn, err := net.Dial("tcp", raw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	answer, err := (&http.Client{Timeout: 10 * time.Second}).Get("http://" + raw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_ = server.Close()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("the server does not end")
	}
}
