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

// process returns the folder of a Deployment's program.
func process(d *appsv1.Deployment) string { return strings.TrimPrefix(d.Name, "modelbox-") }

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

// mountedSecrets returns the mounted Secrets by path. Other volumes, and volumes that are
// not read-only, are errors.
func mountedSecrets(t *testing.T, d *appsv1.Deployment) map[string]string {
	t.Helper()
	out, secrets := map[string]string{}, map[string]string{}
	for _, volume := range d.Spec.Template.Spec.Volumes {
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
		out[mount.MountPath] = secrets[mount.Name]
	}
	return out
}

func TestPodsHaveRequestsAndLimits(t *testing.T) {
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		c := container(d)
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
			if request.IsZero() || limit.Cmp(request) < 0 {
				t.Errorf("%s has request %s and limit %s, want both, and a limit that is not lower than the request", name, &request, &limit)
			}
		}
		at := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" })
		if at < 0 {
			t.Fatal("GOMEMLIMIT is not set")
		}
		// Go writes MiB where Kubernetes writes Mi.
		soft, err := resource.ParseQuantity(strings.TrimSuffix(c.Env[at].Value, "B"))
		if err != nil {
			t.Fatalf("GOMEMLIMIT %q: %v", c.Env[at].Value, err)
		}
		if hard := c.Resources.Limits.Memory(); soft.Sign() <= 0 || soft.Cmp(*hard) >= 0 {
			t.Errorf("GOMEMLIMIT is %s, want less than the memory limit, %s", &soft, hard)
		}
	})
}

// declares reports whether a container has a port with this name.
func declares(c *corev1.Container, port intstr.IntOrString) bool {
	return port.Type == intstr.String && slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == port.StrVal })
}

func TestPodsAreProbed(t *testing.T) {
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		c := container(d)
		for name, probe := range map[string]*corev1.Probe{"startup": c.StartupProbe, "readiness": c.ReadinessProbe, "liveness": c.LivenessProbe} {
			switch {
			case probe == nil || probe.HTTPGet == nil:
				t.Errorf("there is no %s probe with httpGet", name)
			case !declares(c, probe.HTTPGet.Port):
				t.Errorf("the %s probe uses port %q, which the container does not declare", name, probe.HTTPGet.Port.String())
			}
		}
	})
}

// Every flag in a Deployment exists, and the defaults of other flags match the
// Deployment.
func TestFlagsExist(t *testing.T) {
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		known := flagsOf(t, process(d))
		flags := container(d).Args
		if command := container(d).Command; len(command) > 0 {
			if want := "/" + process(d); command[0] != want {
				t.Errorf("the command is %q, want %q", command[0], want)
			}
			flags = slices.Concat(command[1:], flags)
		}
		for _, arg := range flags {
			name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
			if _, ok := known[name]; !ok || !strings.HasPrefix(arg, "-") {
				t.Errorf("%q is not a flag of the %s", arg, process(d))
			}
		}
	})
	webhook := find[*appsv1.Deployment](t, install(t), webhookName)
	if dir := flagsOf(t, "webhook")["cert-dir"]; mountedSecrets(t, webhook)[dir] == "" {
		t.Errorf("no Secret is mounted at %q, where the webhook reads its certificate", dir)
	}
}

// The declared ports are those on which the processes listen by default.
func TestPortsMatchFlags(t *testing.T) {
	addresses := map[string]string{"metrics": "metrics-bind-address", "health": "health-probe-bind-address", "webhook": "webhook-bind-address"}
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		known := flagsOf(t, process(d))
		for _, port := range container(d).Ports {
			want := known[addresses[port.Name]]
			if port.Name == "webhook" {
				continue // controller-runtime's default; the end-to-end suite calls it.
			}
			if got := ":" + strconv.Itoa(int(port.ContainerPort)); got != want {
				t.Errorf("port %s is %s, and the process listens on %q", port.Name, got, want)
			}
		}
	})
}

// flagsOf returns the flags of a process with their defaults, as its help has them.
func flagsOf(t *testing.T, process string) map[string]string {
	t.Helper()
	help, _ := exec.CommandContext(t.Context(), "go", "run", "../"+process, "--help").CombinedOutput() // flag.ErrHelp is an error.
	out := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^  -([a-z0-9-]+).*\n(?:    .*?(?:\(default "?([^")]*)"?\))?$)`).FindAllStringSubmatch(string(help), -1) {
		out[found[1]] = found[2]
	}
	if len(out) < 10 {
		t.Fatalf("only %d flags were found in %s", len(out), help)
	}
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

func TestEveryProcessSurvivesARolloutAndADrain(t *testing.T) {
	objects := install(t)
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		if d.Spec.Replicas == nil || *d.Spec.Replicas < 2 {
			t.Error("there are fewer than 2 replicas")
		}
		if !selects(t, d.Spec.Selector, d) {
			t.Error("the Deployment does not select its own pods")
		}
		if update := d.Spec.Strategy.RollingUpdate; update == nil || update.MaxUnavailable == nil || *update.MaxUnavailable != intstr.FromInt32(0) {
			t.Error("maxUnavailable is not 0: a rollout would delete a pod before a new one is ready")
		}
		budget := find[*policyv1.PodDisruptionBudget](t, objects, d.Name).Spec
		if !selects(t, budget.Selector, d) {
			t.Error("the disruption budget does not select the pods")
		}
		if budget.MaxUnavailable == nil || *budget.MaxUnavailable != intstr.FromInt32(1) {
			t.Errorf("the disruption budget has maxUnavailable %v, want 1", budget.MaxUnavailable)
		}
		if !slices.ContainsFunc(d.Spec.Template.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
			return c.TopologyKey == corev1.LabelHostname && c.MaxSkew == 1 && selects(t, c.LabelSelector, d)
		}) {
			t.Error("the pods are not spread over nodes")
		}
	})
}

// A pod of the webhook needs the flag --drain, 15 s by default, and up to 20 s for requests in flight.
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
		t.Fatalf("it selects the pods of %d Deployments, want 1", len(selected))
	}
	return selected[0]
}

func TestServicesReachPods(t *testing.T) {
	objects := install(t)
	for _, service := range each[*corev1.Service](slices.Concat(objects, monitoring(t))) {
		t.Run(service.Name, func(t *testing.T) {
			d := serviceOf(t, objects, service)
			if !strings.HasPrefix(service.Name, d.Name) {
				t.Errorf("it selects the pods of %s", d.Name)
			}
			for _, port := range service.Spec.Ports {
				if !declares(container(d), port.TargetPort) {
					t.Errorf("the targetPort of its port %s is %q, which the container does not declare", port.Name, port.TargetPort.String())
				}
			}
		})
	}
}

func TestNetworkPoliciesAllowAllPorts(t *testing.T) {
	objects := install(t)
	eachDeployment(t, func(t *testing.T, d *appsv1.Deployment) {
		rules := find[*networkingv1.NetworkPolicy](t, objects, d.Name).Spec
		if !selects(t, &rules.PodSelector, d) {
			t.Error("the network policy does not select the pods")
		}
		open := map[string]bool{}
		for _, rule := range rules.Ingress {
			for _, port := range rule.Ports {
				if port.Port == nil || !declares(container(d), *port.Port) {
					t.Errorf("the network policy allows port %v, which the container does not declare", port.Port)
					continue
				}
				open[port.Port.StrVal] = true
			}
		}
		for _, port := range container(d).Ports {
			// Probes come from the node, which network policies do not block.
			if port.Name != "health" && !open[port.Name] {
				t.Errorf("the network policy does not allow port %s", port.Name)
			}
		}
	})
}
