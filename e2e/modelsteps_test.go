//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/modelbox-operator/modelbox-operator/test/certificates"
	"github.com/modelbox-operator/modelbox-operator/test/modelserver"
)

const (
	// modelsImage has the servers of models: /modelserver; /versitygw, which serves the buckets
	// below /s3; and /crane, a registry, with an image of the model in /model.tar.
	modelsImage = "modelbox-e2e-models:e2e"
	// registryPort is on the loopback address of a node: containerd pulls from there without TLS.
	registryPort = 5055
	// modelToken is what /private/ of the model server requires.
	modelToken = "right"
)

// modelFiles serves no requests: it has the hashes of what the servers in the cluster serve.
var modelFiles = modelserver.New(modelserver.Options{})

// sumOf returns spec.model.sha256 of a file of the model server.
func sumOf(name string) string {
	GinkgoHelper()
	body := modelFiles.Body(name)
	Expect(body).NotTo(BeNil(), name)
	return modelserver.SHA256(body)
}

// buildModels builds the image of the servers, and returns its name.
func buildModels() string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	build(dir, "modelserver", "./modelserver")
	build(dir, "versitygw", "-modfile=../hack/tools/e2e/go.mod", "github.com/versity/versitygw/cmd/versitygw")
	build(dir, "crane", "-modfile=../hack/tools/e2e/go.mod", "github.com/google/go-containerregistry/cmd/crane")
	write(filepath.Join(dir, "s3", "models", "tiny.tar.zst"), modelFiles.Body("model.tar.zst"))
	for name, content := range modelserver.Files() {
		write(filepath.Join(dir, "model", name), content)
	}
	image("modelbox-e2e-model:e2e", dir, "FROM scratch\nCOPY model /\n")
	run(docker, "save", "--output", filepath.Join(dir, "model.tar"), "modelbox-e2e-model:e2e")
	image(modelsImage, dir, "FROM "+busybox+"\nCOPY modelserver versitygw crane model.tar /\nCOPY s3 /s3\n")
	return modelsImage
}

func write(path string, content []byte) {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
	Expect(os.WriteFile(path, content, 0o644)).To(Succeed())
}

// image builds an image from the files of a folder.
func image(name, dir, dockerfile string) {
	GinkgoHelper()
	_, err := attempt(dockerfile, docker, "build", "--quiet", "--tag", name, "--file", "-", dir)
	Expect(err).NotTo(HaveOccurred())
}

// modelsManifest is a pod with a server, and its Service.
const modelsManifest = `
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  labels: {serves: %[1]s}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: server
    image: ` + modelsImage + `
    imagePullPolicy: Never
    command: %[2]s
    readinessProbe:
      httpGet: {path: %[3]s, port: 8080}
      periodSeconds: 1
    volumeMounts: [{name: tls, mountPath: /tls}]
  volumes:
  - name: tls
    secret: {secretName: models-tls, optional: true}
---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  selector: {serves: %[1]s}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: https, port: 443, targetPort: 8443}
`

// models are the servers of one namespace.
type models struct {
	ns string
	// host is the name of the model server, for http:// and https:// URLs. The certificate is in
	// the Secret models-tls.
	host string
}

// serveModels starts a model server in a namespace, and returns when it is ready.
func serveModels(ns string) models {
	GinkgoHelper()
	m := models{ns: ns, host: "models." + ns + ".svc"}
	dir := GinkgoT().TempDir()
	cert, key := certificates.NewServer(m.host)
	write(filepath.Join(dir, "tls.crt"), cert)
	write(filepath.Join(dir, "tls.key"), key)
	run(kubectl, "-n", ns, "create", "secret", "tls", "models-tls", "--cert="+filepath.Join(dir, "tls.crt"), "--key="+filepath.Join(dir, "tls.key"))
	m.serve("models", "/files", "/modelserver", "--token="+modelToken, "--plain="+m.host, "--slow=30s", "--paced=4s",
		"--tls-cert=/tls/tls.crt", "--tls-key=/tls/tls.key")
	return m
}

// serveS3 starts an S3 server, and returns its endpoint.
func (m models) serveS3() string {
	GinkgoHelper()
	m.serve("s3", "/health", "/versitygw", "--access=key", "--secret=right-secret", "--region=eu-central-1", "--port=:8080", "--health=/health", "--quiet",
		"posix", "--nometa", "/s3")
	return "http://s3." + m.ns + ".svc"
}

func (m models) serve(name, ready string, args ...string) {
	GinkgoHelper()
	list, err := json.Marshal(args)
	Expect(err).NotTo(HaveOccurred())
	apply(m.ns, fmt.Sprintf(modelsManifest, name, list, ready))
	awaitReady(m.ns, "pod/"+name)
}

// gets returns how many GET requests for a path the model server has answered.
func (m models) gets(path string) int {
	GinkgoHelper()
	var log []modelserver.Access
	out := run(kubectl, "-n", m.ns, "exec", "models", "--", "wget", "-q", "-O", "-", "http://127.0.0.1:8080/log")
	Expect(json.Unmarshal([]byte(out), &log)).To(Succeed(), out)
	count := 0
	for _, access := range log {
		if access.Path == path {
			count += access.Count
		}
	}
	return count
}

// credentials creates a Secret with the environment of a fetch.
func (m models) credentials(name string, pairs ...string) {
	GinkgoHelper()
	args := []string{kubectl, "-n", m.ns, "create", "secret", "generic", name}
	for _, pair := range pairs {
		args = append(args, "--from-literal="+pair)
	}
	run(args...)
}

// trusting is a podTemplate with which fetch-model trusts the certificate of the model server.
const trusting = `
podTemplate:
  spec:
    initContainers:
    - name: fetch-model
      env: [{name: SSL_CERT_FILE, value: /ca/tls.crt}]
      volumeMounts: [{name: ca, mountPath: /ca, readOnly: true}]
    volumes:
    - name: ca
      secret: {secretName: models-tls}
`

// checking is a server that ends with an error unless all files of the model are there, and
// are read-only. It is ready after that.
var checking = fmt.Sprintf(`
image: %s
resources: {}
command:
- sh
- -c
- >-
  cd /models && [ "$(find . -type f | wc -l)" = %d ] && sha256sum -c -s %s &&
  ! touch x 2>/dev/null && ! touch tokenizer/x 2>/dev/null && touch /checked && exec sleep 86400
readinessProbe:
  exec: {command: [test, -e, /checked]}
  periodSeconds: 1
`, busybox, len(modelserver.Files()), modelserver.Sums)

// checkingWeights is the same for the file weights.safetensors alone.
var checkingWeights = strings.Replace(checking, fmt.Sprintf(`[ "$(find . -type f | wc -l)" = %d ] && sha256sum -c -s %s`, len(modelserver.Files()), modelserver.Sums),
	`[ "$(ls -A)" = `+modelserver.Weights+` ] && sha256sum `+modelserver.Weights+` | grep -q `+modelserver.SHA256(modelserver.Files()[modelserver.Weights]), 1)

// serveRegistryOn starts a registry on a node's loopback address, pushes the image of the
// model to it, and returns the reference by digest under which that node can pull it.
func (m models) serveRegistryOn(node string) string {
	GinkgoHelper()
	address := fmt.Sprintf("127.0.0.1:%d", registryPort)
	apply(m.ns, fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: registry
spec:
  nodeName: %s
  hostNetwork: true
  terminationGracePeriodSeconds: 0
  containers:
  - name: registry
    image: %s
    imagePullPolicy: Never
    command: [/crane, registry, serve, --address, %q]
`, node, modelsImage, address))
	awaitReady(m.ns, "pod/registry")
	var pushed string
	Eventually(func() (err error) {
		pushed, err = attempt("", kubectl, "-n", m.ns, "exec", "registry", "--", "/crane", "push", "/model.tar", address+"/models/tiny:1")
		return err
	}).Should(Succeed())
	reference := regexp.MustCompile(regexp.QuoteMeta(address) + "/models/tiny@sha256:[0-9a-f]{64}").FindString(pushed)
	Expect(reference).NotTo(BeEmpty(), pushed)
	return reference
}

// claim creates a PersistentVolumeClaim of the default storage class.
func (m models) claim(name string) {
	GinkgoHelper()
	apply(m.ns, fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s},
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`, name))
}

// fetchLog returns what fetch-model of a ModelBox has printed.
func (m models) fetchLog(name string) string {
	out, err := attempt("", kubectl, "-n", m.ns, "logs", "-l", "app.kubernetes.io/instance="+name, "-c", "fetch-model", "--tail=-1")
	if err != nil {
		return err.Error()
	}
	return out
}
