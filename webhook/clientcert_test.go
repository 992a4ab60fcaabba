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

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/certificates"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

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

var _ = Describe("A process with --client-ca", func() {
	BeforeEach(func() {
		stop()
		DeferCleanup(func() {
			stop()
			start(nil)
		})
	})

	create := func(ctx context.Context) error {
		box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "by-certificate"}, Spec: modelv1.ModelBoxSpec{Image: "nginx:1.27"}}
		return env.Client.Create(ctx, box, client.DryRunAll)
	}

	It("answers the API server that presents its certificate, and refuses others", func(ctx context.Context) {
		start(func(o *options) { o.tls.clientCA, o.tls.clientNames = clients.CA, []string{"kube-apiserver"} })
		before := calls()
		Eventually(func() error { return create(ctx) }).Should(Succeed())
		Expect(calls()).To(BeNumerically(">=", before+2), "both webhooks were called")

		Expect(review()).To(MatchError(ContainSubstring("tls:")))
		pair, err := tls.LoadX509KeyPair(clients.Cert, clients.Key)
		Expect(err).NotTo(HaveOccurred())
		Expect(review(pair)).To(Succeed())
	})

	It("refuses the API server if the certificate has another name", func(ctx context.Context) {
		start(func(o *options) { o.tls.clientCA, o.tls.clientNames = clients.CA, []string{"front-proxy"} })
		Eventually(func() error { return create(ctx) }).Should(MatchError(ContainSubstring("tls:")))
	})
})
