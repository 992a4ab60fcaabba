// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
)

// eachDeployment runs a test for the Deployment of each of the two processes.
func eachDeployment(t *testing.T, test func(*testing.T, *appsv1.Deployment)) {
	t.Helper()
	all := each[*appsv1.Deployment](install(t))
	if len(all) != 2 {
		t.Errorf("the manifests have %d Deployments, want 2", len(all))
	}
	for _, d := range all {
		t.Run(d.Name, func(t *testing.T) {
			if len(d.Spec.Template.Spec.Containers) != 1 {
				t.Fatalf("the pod has %d containers, want 1", len(d.Spec.Template.Spec.Containers))
			}
			test(t, d)
		})
	}
}

func container(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }

func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	if got := find[*corev1.Namespace](t, install(t), system).Labels[podsecurity.EnforceLevelLabel]; got != string(podsecurity.LevelRestricted) {
		t.Errorf("the namespace enforces %q", got)
	}
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		pod := &d.Spec.Template
		result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, &pod.ObjectMeta, &pod.Spec))
		if !result.Allowed {
			t.Errorf("not allowed by Pod Security %s: %s", level, result.ForbiddenDetail())
		}
	})
}

// The flags in a Deployment exist, and its ports and its mounted Secret are those of the defaults.
func TestFlags(t *testing.T) {
	addresses := map[string]string{"metrics": "metrics-bind-address", "health": "health-probe-bind-address"}
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		process := strings.TrimPrefix(d.Name, "modelbox-")
		known := flagsOf(t, process)
		setFlags(t, d)
		for _, port := range container(d).Ports {
			// The webhook's port is controller-runtime's default; the end-to-end suite calls it.
			if got := ":" + strconv.Itoa(int(port.ContainerPort)); port.Name != "webhook" && got != known[addresses[port.Name]] {
				t.Errorf("port %s is %s, and the process listens on %q", port.Name, got, known[addresses[port.Name]])
			}
		}
		for _, flag := range []string{"sizes-file", "cert-dir"} {
			at := known[flag] // Only the webhook reads files.
			if at != "" && !slices.ContainsFunc(container(d).VolumeMounts, func(m corev1.VolumeMount) bool { return strings.HasPrefix(at, m.MountPath) }) {
				t.Errorf("nothing is mounted where the process reads %q", at)
			}
		}
	})
}

// setFlags returns the values of the flags of a Deployment by name. Each is one that the process has.
func setFlags(t *testing.T, d *appsv1.Deployment) map[string]string {
	t.Helper()
	process, values := strings.TrimPrefix(d.Name, "modelbox-"), map[string]string{}
	known, words := flagsOf(t, process), slices.Concat(container(d).Command, container(d).Args)
	if len(words) > 0 && words[0] == "/"+process {
		words = words[1:]
	}
	for _, arg := range words {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if _, ok := known[name]; !ok || !strings.HasPrefix(arg, "-") {
			t.Errorf("%q is not a flag of the %s", arg, process)
		}
		values[name] = value
	}
	return values
}

// flagsOf returns the flags of a process with their defaults, of docs/flags.md, which "make generate" writes from
// their help.
func flagsOf(t *testing.T, process string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, section := range []string{"Both processes", "The " + process} {
		_, text, _ := strings.Cut(readFile(t, "../docs/flags.md"), "\n## "+section+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		for _, found := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)` \\| (.*?) \\| ").FindAllStringSubmatch(text, -1) {
			out[found[1]] = strings.TrimSpace(found[2])
		}
	}
	if len(out) < 20 {
		t.Fatalf("docs/flags.md has only %d flags of the %s", len(out), process)
	}
	return out
}

// A pod of the webhook needs the flag --shutdown-delay, 15 s by default, and up to 20 s for requests in flight.
func TestTheWebhookHasTimeToDrain(t *testing.T) {
	const needed = 15 + 20
	pod := find[*appsv1.Deployment](t, install(t), webhookName).Spec.Template.Spec
	if got := ptr.Deref(pod.TerminationGracePeriodSeconds, 30); got <= needed {
		t.Errorf("terminationGracePeriodSeconds is %d, want more than %d", got, needed)
	}
}
