// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
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

// A pod has a read-only root file system and mounts no Secret except the webhook's
// certificate. The controller alone has its service account's token: the webhook sends no
// request to the API server.
func TestPodsMountOnlyWhatTheyNeed(t *testing.T) {
	want := map[string]map[string]string{
		webhookName:    {"/etc/modelbox-webhook/tls": "modelbox-webhook-tls"},
		controllerName: {},
	}
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		if sc := container(d).SecurityContext; sc == nil || sc.ReadOnlyRootFilesystem == nil || !*sc.ReadOnlyRootFilesystem {
			t.Error("the root file system is not read-only")
		}
		if diff := cmp.Diff(want[d.Name], mountedSecrets(t, d)); diff != "" {
			t.Errorf("mounted Secrets, by path (-want +got):\n%s", diff)
		}
		account := find[*corev1.ServiceAccount](t, install(t), d.Spec.Template.Spec.ServiceAccountName)
		for from, automount := range map[string]*bool{
			"the pod": d.Spec.Template.Spec.AutomountServiceAccountToken, "its service account": account.AutomountServiceAccountToken,
		} {
			// Only the controller sends requests to the API server.
			if mounts := automount == nil || *automount; mounts != (d.Name == controllerName) {
				t.Errorf("%s mounts the token: %t", from, mounts)
			}
		}
	})
}

// mountedSecrets returns the mounted Secrets by path. Other volumes, except that of the webhook's sizes, and
// volumes that are not read-only, are errors.
func mountedSecrets(t *testing.T, d *appsv1.Deployment) map[string]string {
	t.Helper()
	out, secrets := map[string]string{}, map[string]string{}
	const sizes = "sizes"
	for _, volume := range d.Spec.Template.Spec.Volumes {
		if m := volume.ConfigMap; m != nil && volume.Name == sizes && d.Name == webhookName && m.Name == "modelbox-sizes" && ptr.Deref(m.Optional, false) {
			continue
		}
		if volume.Secret == nil {
			t.Errorf("volume %s is not a Secret", volume.Name)
			continue
		}
		secrets[volume.Name] = volume.Secret.SecretName
	}
	for _, mount := range container(d).VolumeMounts {
		if !mount.ReadOnly {
			t.Errorf("volume %s is not read-only", mount.Name)
		}
		if mount.Name != sizes {
			out[mount.MountPath] = secrets[mount.Name]
		}
	}
	return out
}

// Go must collect garbage before the kernel ends the process. Go writes MiB where Kubernetes writes Mi.
func TestMemoryLimits(t *testing.T) {
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		c := container(d)
		at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if at < 0 {
			t.Fatal("GOMEMLIMIT is not set")
		}
		soft, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[at].Value, "B"))
		if hard := c.Resources.Limits.Memory(); err != nil || soft.Sign() <= 0 || soft.Cmp(*hard) >= 0 {
			t.Errorf("GOMEMLIMIT is %s (%v), want less than the memory limit, %s", &soft, err, hard)
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
		if file := known["sizes-file"]; d.Name == webhookName && !slices.ContainsFunc(container(d).VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "sizes" && m.MountPath+"/sizes.yaml" == file
		}) {
			t.Errorf("no volume is mounted where the webhook reads %q", file)
		}
		if dir := known["cert-dir"]; d.Name == webhookName && mountedSecrets(t, d)[dir] == "" {
			t.Errorf("no Secret is mounted at %q, where the webhook reads its certificate", dir)
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

// knownFlags caches the flags of the processes.
var knownFlags = map[string]map[string]string{}

// flagsOf returns the flags of a process with their defaults, as its help has them.
func flagsOf(t *testing.T, process string) map[string]string {
	t.Helper()
	if out, ok := knownFlags[process]; ok {
		return out
	}
	help, _ := exec.CommandContext(t.Context(), "go", "run", "../"+process, "--help").CombinedOutput() // flag.ErrHelp is an error.
	out := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^  -([a-z0-9-]+).*\n(?:    .*?(?:\(default "?([^")]*)"?\))?$)`).FindAllStringSubmatch(string(help), -1) {
		out[found[1]] = found[2]
	}
	if len(out) < 10 {
		t.Fatalf("only %d flags were found in %s", len(out), help)
	}
	knownFlags[process] = out
	return out
}

// selects reports whether a selector is not empty and selects the pods of a Deployment.
func selects(t *testing.T, selector *metav1.LabelSelector, d *appsv1.Deployment) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return !s.Empty() && s.Matches(labels.Set(d.Spec.Template.Labels))
}

// A pod of the webhook needs the flag --shutdown-delay, 15 s by default, and up to 20 s for requests in flight.
func TestTheWebhookHasTimeToDrain(t *testing.T) {
	const needed = 15 + 20
	pod := find[*appsv1.Deployment](t, install(t), webhookName).Spec.Template.Spec
	if got := ptr.Deref(pod.TerminationGracePeriodSeconds, 30); got <= needed {
		t.Errorf("terminationGracePeriodSeconds is %d, want more than %d", got, needed)
	}
}

// serviceOf returns the one Deployment whose pods a Service selects.
func serviceOf(t *testing.T, objects []object, service *corev1.Service) *appsv1.Deployment {
	t.Helper()
	var selected []*appsv1.Deployment
	for _, d := range each[*appsv1.Deployment](objects) {
		if selects(t, &metav1.LabelSelector{MatchLabels: service.Spec.Selector}, d) {
			selected = append(selected, d)
		}
	}
	if len(selected) != 1 {
		t.Fatalf("Service %s selects the pods of %d Deployments, want 1", service.Name, len(selected))
	}
	return selected[0]
}

// What names pods or ports of another object: selectors, probes, Services and network policies.
func TestSelectorsAndPorts(t *testing.T) {
	objects := install(t)
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		c, pod := container(d), &d.Spec.Template.Spec
		named := []intstr.IntOrString{c.StartupProbe.HTTPGet.Port, c.ReadinessProbe.HTTPGet.Port, c.LivenessProbe.HTTPGet.Port}
		for _, service := range each[*corev1.Service](slices.Concat(objects, monitoring(t))) {
			if strings.HasPrefix(service.Name, d.Name) && serviceOf(t, objects, service) != nil {
				for _, port := range service.Spec.Ports {
					named = append(named, port.TargetPort)
				}
			}
		}
		rules, open := find[*networkingv1.NetworkPolicy](t, objects, d.Name).Spec, map[string]bool{"health": true} // Probes are not blocked.
		for _, rule := range rules.Ingress {
			for _, port := range rule.Ports {
				named, open[port.Port.StrVal] = append(named, *port.Port), true
			}
		}
		for _, port := range named {
			if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal }) {
				t.Errorf("port %q is named, and the container does not declare it", port.String())
			}
		}
		for _, port := range c.Ports {
			if !open[port.Name] {
				t.Errorf("the network policy does not allow port %s", port.Name)
			}
		}
		for what, selector := range map[string]*metav1.LabelSelector{
			"Deployment": d.Spec.Selector, "network policy": &rules.PodSelector, "spread": pod.TopologySpreadConstraints[0].LabelSelector,
			"disruption budget": find[*policyv1.PodDisruptionBudget](t, objects, d.Name).Spec.Selector,
		} {
			if !selects(t, selector, d) {
				t.Errorf("the selector of the %s does not match the pods", what)
			}
		}
	})
}
