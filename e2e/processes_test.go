//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// podsOf returns the pods of one of the operator's two processes.
func podsOf(ctx context.Context, process string) []corev1.Pod {
	GinkgoHelper()
	return running(ctx, system, map[string]string{"app.kubernetes.io/name": process})
}

// restart does a rolling restart of a process, and returns when the new pods are ready.
func restart(process string) {
	GinkgoHelper()
	run(kubectl, "-n", system, "rollout", "restart", "deployment", process)
	run(kubectl, "-n", system, "rollout", "status", "deployment", process, "--timeout=240s")
}

// renew makes cert-manager issue a new certificate, as "cmctl renew" does, and returns
// when it is in the Secret.
func renew(ctx context.Context) {
	GinkgoHelper()
	before := leaf(ctx).SerialNumber
	// Refused while cert-manager has not removed the condition of the last renewal.
	Eventually(func() error {
		_, err := attempt("", kubectl, "-n", system, "patch", "certificate", "modelbox-webhook", "--subresource=status", "--type=json", "-p",
			`[{"op":"add","path":"/status/conditions/-","value":{"type":"Issuing","status":"True","reason":"ManuallyTriggered",`+
				`"message":"renewed by hand","lastTransitionTime":"`+time.Now().UTC().Format(time.RFC3339)+`"}}]`)
		return err
	}).Should(Succeed())
	Eventually(func() *big.Int { return leaf(ctx).SerialNumber }).ShouldNot(Equal(before))
}

// leaf returns the webhook's certificate from the Secret.
func leaf(ctx context.Context) *x509.Certificate {
	GinkgoHelper()
	return certificateIn(ctx, "modelbox-webhook-tls", "tls.crt")
}

func certificateIn(ctx context.Context, secret, key string) *x509.Certificate {
	GinkgoHelper()
	s := get(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: secret}})
	block, _ := pem.Decode(s.Data[key])
	Expect(block).NotTo(BeNil(), "%s in Secret %s", key, secret)
	cert, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return cert
}

// awaitWebhooks waits until check succeeds for every webhook pod, by a local port of each. Requests
// through the API server cannot tell that: it keeps its connections, so many in a row have one pod. The
// kubelet updates the volume of a Secret or ConfigMap when it next syncs the pod, within about a minute; a
// change of the pod's annotations makes it sync immediately. It may not have the new object yet, so
// there is another change every two seconds.
func awaitWebhooks(ctx context.Context, check func(g Gomega, port uint16)) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"e2e/sync":"%d"}}}`, time.Now().Unix()/2)
		for _, pod := range podsOf(ctx, "modelbox-webhook") {
			g.Expect(client.IgnoreNotFound(admin.Patch(ctx, &pod, client.RawPatch(types.MergePatchType, patch)))).To(Succeed())
			port, stop, err := forward(pod.Name, 9443)
			g.Expect(err).NotTo(HaveOccurred())
			func() { defer stop(); check(g, port) }()
		}
	}).Should(Succeed())
}

// awaitServed waits until every webhook pod serves the certificate in the Secret.
func awaitServed(ctx context.Context) {
	GinkgoHelper()
	want := leaf(ctx).SerialNumber
	awaitWebhooks(ctx, func(g Gomega, port uint16) {
		conn, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port), &tls.Config{InsecureSkipVerify: true})
		g.Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		g.Expect(conn.ConnectionState().PeerCertificates[0].SerialNumber).To(Equal(want))
	})
}

// forward forwards a local port to a port of one of the operator's pods.
func forward(pod string, port int) (local uint16, stop func(), err error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return 0, nil, err
	}
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(system).Name(pod).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	ended, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, ended, ready, io.Discard, io.Discard)
	if err != nil {
		return 0, nil, err
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return 0, nil, fmt.Errorf("forwarding a port of %s: %w", pod, err)
	case <-time.After(10 * time.Second):
		close(ended)
		return 0, nil, errors.New("forwarding a port of " + pod + " takes too long")
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(ended)
		return 0, nil, err
	}
	return ports[0].Local, func() { close(ended) }, nil
}

// setArgs sets the arguments of a process, or removes them if there are none.
func setArgs(ctx context.Context, process string, flags ...string) {
	GinkgoHelper()
	d := get(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: process}})
	patch := client.MergeFrom(d.DeepCopy())
	d.Spec.Template.Spec.Containers[0].Args = flags
	Expect(admin.Patch(ctx, d, patch)).To(Succeed())
	run(kubectl, "-n", system, "rollout", "status", "deployment", process, "--timeout=240s")
}

// podsWithArgs returns the names of the pods of a process that have arguments, including
// terminating pods.
func podsWithArgs(ctx context.Context, process string) []string {
	GinkgoHelper()
	pods := &corev1.PodList{}
	Expect(admin.List(ctx, pods, client.InNamespace(system), client.MatchingLabels{"app.kubernetes.io/name": process})).To(Succeed())
	var names []string
	for _, pod := range pods.Items {
		if len(pod.Spec.Containers[0].Args) > 0 {
			names = append(names, pod.Name)
		}
	}
	return names
}

// holder returns the identity of the process that holds the controller's lease: the name of its
// pod, "_" and an ID. A container that restarts in the same pod has another one.
func holder() string {
	GinkgoHelper()
	return run(kubectl, "-n", system, "get", "lease", "modelbox-controller", "-o", "jsonpath={.spec.holderIdentity}")
}

// podOf returns the name of the pod of a holder of the lease.
func podOf(holder string) string {
	pod, _, _ := strings.Cut(holder, "_")
	return pod
}

// kill sends SIGKILL to a pod's process, on its node.
func kill(ctx context.Context, pod string) {
	GinkgoHelper()
	p := get(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: pod}})
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	run(docker, "exec", p.Spec.NodeName, "sh", "-c",
		`kill -9 "$(crictl inspect -o go-template --template '{{.info.pid}}' `+id+`)"`)
}
