//go:build e2e

// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/controller/status"
)

// alone waits until no other spec disturbs these processes of the operator, and then disturbs them alone
// until its end.
func alone(processes ...string) {
	GinkgoHelper()
	for _, process := range processes {
		lock, err := os.Create(filepath.Join(os.TempDir(), clusterName+"."+process+".lock"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(lock.Close) // After the cleanup of the spec.
		Eventually(syscall.Flock).WithArguments(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB).WithTimeout(15 * time.Minute).Should(Succeed())
	}
}

// newNamespace creates a namespace for one spec, and deletes it afterwards.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}
	Expect(admin.Create(ctx, ns)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(client.IgnoreNotFound(admin.Delete(ctx, ns))).To(Succeed())
	})
	return ns.Name
}

// apply applies a manifest as a user would, and returns what kubectl prints.
func apply(ns, manifest string) string {
	GinkgoHelper()
	out, err := attempt(manifest, kubectl, "-n", ns, "apply", "-f", "-")
	Expect(err).NotTo(HaveOccurred())
	return out
}

// refused applies a manifest that must be refused, and returns the error.
func refused(ns, manifest string) string {
	GinkgoHelper()
	out, err := attempt(manifest, kubectl, "-n", ns, "apply", "-f", "-")
	Expect(err).To(HaveOccurred(), out)
	return out
}

// awaitReady waits until an object is Ready, as a user would.
func awaitReady(ns, what string) {
	GinkgoHelper()
	run(kubectl, "-n", ns, "wait", "--for=condition=Ready", "--timeout=240s", what)
}

func get[T client.Object](ctx context.Context, obj T) T {
	GinkgoHelper()
	Expect(admin.Get(ctx, client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return obj
}

// readyCondition returns a function that returns the status and reason of an object's
// Ready condition, such as "False NameConflict".
func readyCondition(ctx context.Context, obj status.Object) func() string {
	return func() string {
		if err := admin.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err.Error()
		}
		ready := meta.FindStatusCondition(obj.GetConditions(), status.ConditionReady)
		if ready == nil || ready.ObservedGeneration != obj.GetGeneration() {
			return "not observed"
		}
		return string(ready.Status) + " " + ready.Reason
	}
}

// running returns the pods with the labels that are not terminating.
func running(ctx context.Context, ns string, labels map[string]string) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(admin.List(ctx, list, client.InNamespace(ns), client.MatchingLabels(labels))).To(Succeed())
	var pods []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// nodesOf returns the names of the nodes of pods.
func nodesOf(pods []corev1.Pod) []string {
	var nodes []string
	for _, pod := range pods {
		nodes = append(nodes, pod.Spec.NodeName)
	}
	return nodes
}

func nodes(ctx context.Context) []corev1.Node {
	GinkgoHelper()
	list := &corev1.NodeList{}
	Expect(admin.List(ctx, list)).To(Succeed())
	Expect(len(list.Items)).To(BeNumerically(">=", 2), "the suite needs two schedulable nodes: e2e/kind.yaml")
	return list.Items
}

func internalIP(node corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}

// newClient starts a pod with sh and wget in a namespace, and returns when it is ready.
func newClient(ctx context.Context, ns string) string {
	GinkgoHelper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "client"},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "client", Image: busybox, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "3600"},
			}},
		},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	awaitReady(ns, "pod/client")
	return pod.Name
}

// fetch gets a URL from the client pod. More arguments are options of wget.
func fetch(ns, url string, options ...string) (string, error) {
	return attempt("", append(append([]string{kubectl, "-n", ns, "exec", "client", "--", "wget", "-q", "-T", "3", "-O", "-"}, options...), url)...)
}

// fetchable waits until the client pod can get a URL.
func fetchable(ns, url string) {
	GinkgoHelper()
	Eventually(func() error {
		_, err := fetch(ns, url)
		return err
	}).Should(Succeed())
}

// fetchRepeatedly gets a URL in a loop from a pod, up to ten times a second, with options of wget in the words of a shell. stop
// ends the loop and returns the numbers of successes and failures; the report has the latter with their time and cause.
func fetchRepeatedly(ctx context.Context, ns, url string, options ...string) (stop func() (ok, failed int)) {
	GinkgoHelper()
	loop := fmt.Sprintf(`while [ ! -e /tmp/stop ]; do
  since=$(date +%%s)
  sleep 0.1
  if error=$(wget -q -T 3 -O /dev/null %s %s 2>&1); then echo ok; else echo "failed at $(date -u +%%T), after $(($(date +%%s) - since)) s: $error"; fi
done`, strings.Join(options, " "), url)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "load"},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{
				Name: "load", Image: busybox, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sh", "-c", loop},
			}},
		},
	}
	Expect(admin.Create(ctx, pod)).To(Succeed())
	awaitReady(ns, "pod/load")
	return func() (ok, failed int) {
		GinkgoHelper()
		// The loop may end before the command that ends it does, which is killed with the container then.
		if _, err := attempt("", kubectl, "-n", ns, "exec", "load", "--", "touch", "/tmp/stop"); err != nil {
			GinkgoWriter.Println("ending the requests:", err)
		}
		run(kubectl, "-n", ns, "wait", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=60s", "pod/load")
		var failures []string
		for line := range strings.Lines(run(kubectl, "-n", ns, "logs", "load")) {
			if line == "ok\n" {
				ok++
			} else {
				failures = append(failures, line)
			}
		}
		if len(failures) > 0 {
			AddReportEntry("requests that failed", strings.Join(failures, ""), ReportEntryVisibilityAlways)
		}
		return ok, len(failures)
	}
}

// deployment creates a Deployment of idle pods without an owner reference.
func deployment(ctx context.Context, ns, name string, replicas int32, annotations map[string]string) *appsv1.Deployment {
	GinkgoHelper()
	labels := map[string]string{"app": name}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: annotations},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers: []corev1.Container{{
						Name: "idle", Image: busybox, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"sleep", "86400"},
					}},
				},
			},
		},
	}
	Expect(admin.Create(ctx, d)).To(Succeed())
	return d
}
