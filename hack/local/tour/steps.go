// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package tour

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const namespace = "default"

// deployment returns the manifest of a Deployment that the operator does not own.
func deployment(name, annotations string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, annotations: {%[2]s}}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: web, image: "nginx:1.27"}]}
`, name, annotations)
}

func (t *Tour) sample(name string) string { return filepath.Join(t.Samples, name+".yaml") }

// samplePath returns a sample's path as a user types it.
func samplePath(name string) string { return "config/samples/" + name + ".yaml" }

// apply applies a sample, and prints the command as a user types it.
func (t *Tour) apply(ctx context.Context, name string) error {
	t.line("   $ kubectl apply -f %s", samplePath(name))
	output, err := t.quietly(ctx, "", "apply", "-n", namespace, "-f", t.sample(name))
	t.indent(output)
	if err != nil {
		return fmt.Errorf("applying %s: %w", samplePath(name), err)
	}
	return nil
}

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// get reads an object. If it cannot be read, the result has no uid.
func get[T client.Object](ctx context.Context, t *Tour, obj T) T {
	_ = t.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj) // Callers check the uid.
	return obj
}

// field returns a field of an object by a jsonpath of kubectl, or "" if the object does
// not exist.
func (t *Tour) field(ctx context.Context, object, path string) string {
	output, err := t.quietly(ctx, "", "get", object, "-o", "jsonpath="+path)
	if err != nil {
		return ""
	}
	return output
}

const (
	readyReason   = `{.status.conditions[?(@.type=="Ready")].reason}`
	readyMessage  = `{.status.conditions[?(@.type=="Ready")].message}`
	readyStatus   = `{.status.conditions[?(@.type=="Ready")].status}`
	readyObserved = `{.status.conditions[?(@.type=="Ready")].observedGeneration}`
)

// awaitReason waits until an object's Ready condition has a reason, and prints its
// message.
func (t *Tour) awaitReason(ctx context.Context, object, reason string) error {
	return t.until(ctx, object+" to have the reason "+reason, func(ctx context.Context) (string, bool) {
		seen := t.field(ctx, object, readyReason)
		if seen != reason {
			return "", false
		}
		return fmt.Sprintf("%s: Ready=%s %s: %s", object, t.field(ctx, object, readyStatus), seen, t.field(ctx, object, readyMessage)), true
	})
}

func (t *Tour) bindEru(ctx context.Context) error {
	t.eru = "web"
	if _, err := t.kubectlOf(ctx, deployment("web", `mtsre.meitu.com/eru: "true"`), "apply", "-f", "-"); err != nil {
		return err
	}
	if err := t.until(ctx, "the Eru of Deployment web", func(ctx context.Context) (string, bool) {
		return "", t.field(ctx, "eru/web", "{.status.phase}") == "Stopped"
	}); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "get", "eru"); err != nil {
		return err
	}
	_, err := t.kubectl(ctx, "patch", "eru", "web", "--type=merge", "-p", `{"spec":{"enabled":true,"schedule":"* * * * *"}}`)
	return err
}

func (t *Tour) modelbox(ctx context.Context) error {
	if err := t.apply(ctx, "model_v1_modelbox"); err != nil {
		return err
	}
	manifest, err := os.ReadFile(t.sample("model_v1_modelbox"))
	if err != nil {
		return err
	}
	stored, err := t.quietly(ctx, "", "get", "modelbox/modelbox-sample", "-o", "yaml")
	if err != nil {
		return fmt.Errorf("reading the ModelBox back: %s: %w", stored, err)
	}
	before, err := specLines(manifest)
	if err != nil {
		return err
	}
	after, err := specLines([]byte(stored))
	if err != nil {
		return err
	}
	for _, line := range additions(before, after) {
		if strings.HasPrefix(line, "+") {
			line = t.green(line)
		}
		t.line("     %s", line)
		if strings.HasPrefix(line, "-") {
			return fmt.Errorf("admission changed the user's value: %s", line)
		}
	}
	return t.check(strings.Contains(stored, "resourceType: small") && strings.Contains(stored, "serviceType: NodePort") &&
		strings.Contains(stored, "failureThreshold: 900"),
		"admission set the size, the Service type and the probes, with 30 minutes for a server to start, and did not change the user's values")
}

// specLines returns the lines of an object's spec, with sorted keys.
func specLines(object []byte) ([]string, error) {
	var parsed struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(object, &parsed); err != nil {
		return nil, err
	}
	out, err := yaml.Marshal(parsed)
	return strings.Split(strings.TrimSpace(string(out)), "\n"), err
}

func (t *Tour) refusals(ctx context.Context) error {
	manifest := func(apiVersion, kind, spec string) string {
		return fmt.Sprintf("{apiVersion: %s, kind: %s, metadata: {name: bad}, spec: %s}", apiVersion, kind, spec)
	}
	create := []string{"create", "-f", "-"}
	box := func(spec string) string { return manifest("model.github.com/v1", "ModelBox", spec) }
	for _, refusal := range []struct {
		what, stdin string
		args        []string
		want        []string
	}{
		{"a preset together with other resources", box(`{image: "a:1", resourceType: small, resources: {limits: {cpu: 3}}}`), create, []string{"set resourceType: custom"}},
		{"a nodePort in a Service without node ports", box(`{image: "a:1", serviceType: ClusterIP, ports: [{port: 80, nodePort: 30080}]}`), create, []string{"spec.ports[0].nodePort"}},
		{"a field of podTemplate that a Pod does not have", box(`{image: "a:1", podTemplate: {spec: {nodeSelektor: {a: b}}}}`), create, []string{"spec.podTemplate.spec.nodeSelektor"}},
		{"several invalid fields, in one error", box(`{image: "A B", replicas: -1, rollingUpdate: 0, ports: [{port: 80, targetPort: unknown}]}`), create,
			[]string{"spec.image", "spec.replicas", "spec.rollingUpdate", "spec.ports[0].targetPort"}},
		{"a scale below 0: no webhook is called, the schema refuses it", "",
			[]string{"patch", "modelbox/modelbox-sample", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":-1}}`},
			[]string{"greater than or equal to 0"}},
		{"an App with an invalid name of an environment variable", manifest("app.huolala.cn/v1", "App", `{image: "a:1", envs: [{name: "A=B"}]}`), create, []string{"spec.envs[0].name"}},
		{"a Genericdaemon with an invalid label", manifest("mydomain.com/v1beta1", "Genericdaemon", `{image: "a:1", label: "-logs"}`), create, []string{"spec.label"}},
		{"a UnitedDeployment with an invalid name of a Deployment", manifest("extension.k8s.io/v1", "UnitedDeployment", `{deploymentName: My_Web, replicas: 1}`), create, []string{"spec.deploymentName"}},
		{"an Eru whose schedule matches no date", manifest("mtsre.meitu.com/v1", "Eru", `{schedule: "0 0 30 2 *"}`), create, []string{"spec.schedule"}},
	} {
		if err := t.refused(ctx, refusal.what, refusal.stdin, refusal.args, refusal.want...); err != nil {
			return err
		}
	}
	return nil
}

// rights shows that the operator does not lend its own rights to a user.
func (t *Tour) rights(ctx context.Context) error {
	if _, err := t.kubectl(ctx, "create", "role", "writes-modelboxes", "--verb=*", "--resource=modelboxes.model.github.com"); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "create", "rolebinding", "alice", "--role=writes-modelboxes", "--user=alice"); err != nil {
		return err
	}
	box := `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: alices}, spec: {image: "nginx:1.27"}}`
	create := []string{"create", "--dry-run=server", "--as=alice", "-f", "-"}
	may := func(what string) error {
		return t.until(ctx, "alice to have the right to create "+what, func(ctx context.Context) (string, bool) {
			answer, _ := t.quietly(ctx, "", "auth", "can-i", "create", what, "--as=alice") // "no" is an error, too.
			return "", answer == "yes"
		})
	}
	if err := may("modelboxes.model.github.com"); err != nil {
		return err
	}
	if err := t.refused(ctx, "alice may write ModelBoxes, and no Deployments", box, create,
		"alice may not create deployments.apps in namespace default, which this ModelBox makes"); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "create", "rolebinding", "alice-edits", "--clusterrole=edit", "--user=alice"); err != nil {
		return err
	}
	if err := may("deployments.apps"); err != nil {
		return err
	}
	_, err := t.kubectlOf(ctx, box, create...)
	return err
}

func (t *Tour) rollout(ctx context.Context) error {
	progress := func(want string) error {
		return t.until(ctx, "modelbox/modelbox-sample to have "+want+" available pods", func(ctx context.Context) (string, bool) {
			// One read, so that all values are from the same version of the object.
			seen := strings.Split(t.field(ctx, "mb/modelbox-sample",
				"{.spec.replicas}|{.status.availableReplicas}|{.metadata.generation}|"+readyObserved+"|"+readyReason), "|")
			if len(seen) != 5 || seen[2] != seen[3] {
				return "", false
			}
			available := cmp.Or(seen[1], "0") // A counter of 0 is omitted.
			return fmt.Sprintf("%s of %s available  %s", available, seen[0], seen[4]),
				seen[0] == want && available == want && seen[4] == "Ready"
		})
	}
	if err := progress("4"); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "wait", "--for=condition=Ready", "modelbox/modelbox-sample", "--timeout=60s"); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "scale", "modelbox/modelbox-sample", "--replicas=3"); err != nil {
		return err
	}
	if err := progress("3"); err != nil {
		return err
	}
	t.line("   a HorizontalPodAutoscaler with minReplicas 5 scales the ModelBox itself")
	scaler := `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: sample}, spec: {minReplicas: 5, maxReplicas: 9,
  scaleTargetRef: {apiVersion: model.github.com/v1, kind: ModelBox, name: modelbox-sample}}}`
	if output, err := t.quietly(ctx, scaler, "apply", "-f", "-"); err != nil {
		return fmt.Errorf("creating the autoscaler: %s: %w", output, err)
	}
	return progress("5")
}

func (t *Tour) ownership(ctx context.Context) error {
	t.line("   a Service of another owner has the name of a new ModelBox")
	if output, err := t.quietly(ctx, "", "create", "service", "clusterip", "taken", "--tcp=1"); err != nil {
		return fmt.Errorf("creating a Service: %s: %w", output, err)
	}
	service := get(ctx, t, &corev1.Service{ObjectMeta: named("taken")})
	box := `{apiVersion: model.github.com/v1, kind: ModelBox, metadata: {name: taken}, spec: {image: "nginx:1.27", ports: [{port: 80}]}}`
	if output, err := t.quietly(ctx, box, "create", "-f", "-"); err != nil {
		return fmt.Errorf("creating a ModelBox: %s: %w", output, err)
	}
	if err := t.awaitReason(ctx, "mb/taken", "NameConflict"); err != nil {
		return err
	}
	now := get(ctx, t, &corev1.Service{ObjectMeta: named("taken")})
	if err := t.check(now.ResourceVersion == service.ResourceVersion, "the Service still has the resourceVersion %s", service.ResourceVersion); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "delete", "service", "taken"); err != nil {
		return err
	}
	if err := t.awaitReason(ctx, "mb/taken", "Ready"); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "set", "image", "deployment/modelbox-sample", "nginx=example.com/other:1"); err != nil {
		return err
	}
	return t.until(ctx, "the image to be repaired", func(ctx context.Context) (string, bool) {
		d := get(ctx, t, &appsv1.Deployment{ObjectMeta: named("modelbox-sample")})
		note, err := t.quietly(ctx, "", "events", "--for", "mb/modelbox-sample", "--types=Normal", "--no-headers")
		repaired := d.UID != "" && d.Spec.Template.Spec.Containers[0].Image == "nginx:1.7.9" && err == nil && strings.Contains(note, "Repaired")
		if !repaired {
			return "", false
		}
		_, note, _ = strings.Cut(note, "Repaired")
		note, _, _ = strings.Cut(note, "\n")
		return "repaired: " + strings.Join(strings.Fields(note), " "), true
	})
}

func (t *Tour) appAndDaemon(ctx context.Context) error {
	for _, name := range []string{"app_v1_app", "mydomain_v1beta1_genericdaemon"} {
		if err := t.apply(ctx, name); err != nil {
			return err
		}
	}
	if err := t.awaitReason(ctx, "happ/nginx-app", "Ready"); err != nil {
		return err
	}
	if err := t.awaitReason(ctx, "gd/syslog", "NoMatchingNodes"); err != nil {
		return err
	}
	return t.moveDaemon(ctx)
}

// moveDaemon moves the label, and with it the daemon pod, from one node to another.
func (t *Tour) moveDaemon(ctx context.Context) error {
	nodes := &corev1.NodeList{}
	if err := t.Client.List(ctx, nodes); err != nil {
		return err
	}
	was := ""
	for _, node := range nodes.Items[:2] {
		if was != "" {
			if _, err := t.kubectl(ctx, "label", "node", was, "logs-"); err != nil {
				return err
			}
		}
		if _, err := t.kubectl(ctx, "label", "node", node.Name, "logs=here"); err != nil {
			return err
		}
		if err := t.until(ctx, "the daemon on "+node.Name, func(ctx context.Context) (string, bool) {
			where := t.daemonNodes(ctx)
			return "", where == node.Name && t.field(ctx, "gd/syslog", "{.status.installed}") == "1"
		}); err != nil {
			return err
		}
		if err := t.check(true, "the daemon runs on %s, and on no other node", node.Name); err != nil {
			return err
		}
		was = node.Name
	}
	return nil
}

// daemonNodes returns the nodes of the daemon's pods.
func (t *Tour) daemonNodes(ctx context.Context) string {
	output, err := t.quietly(ctx, "", "get", "pods", "-l", "app.kubernetes.io/instance=syslog", "-o", "jsonpath={.items[*].spec.nodeName}")
	if err != nil {
		return ""
	}
	return output
}

func (t *Tour) united(ctx context.Context) error {
	if err := t.apply(ctx, "extension_v1_uniteddeployment"); err != nil {
		return err
	}
	if err := t.awaitReason(ctx, "xud/example-united-deployment", "Ready"); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "scale", "deployment/example-deployment", "--replicas=7"); err != nil {
		return err
	}
	if err := t.until(ctx, "2 replicas again", func(ctx context.Context) (string, bool) {
		d := get(ctx, t, &appsv1.Deployment{ObjectMeta: named("example-deployment")})
		if d.Generation < 3 || *d.Spec.Replicas != 2 {
			return "", false
		}
		return "deployment/example-deployment has 2 replicas again", true
	}); err != nil {
		return err
	}
	return t.replaceTarget(ctx)
}

// replaceTarget deletes the Deployment of the UnitedDeployment and applies it again.
func (t *Tour) replaceTarget(ctx context.Context) error {
	if _, err := t.kubectl(ctx, "delete", "deployment", "example-deployment"); err != nil {
		return err
	}
	if err := t.awaitReason(ctx, "xud/example-united-deployment", "TargetNotFound"); err != nil {
		return err
	}
	if err := t.apply(ctx, "extension_v1_uniteddeployment"); err != nil {
		return err
	}
	return t.awaitReason(ctx, "xud/example-united-deployment", "Ready")
}

func (t *Tour) eruRestarts(ctx context.Context) error {
	if err := t.apply(ctx, "mtsre_v1_eru"); err != nil {
		return err
	}
	if err := t.awaitReason(ctx, "eru/opsnatmonitor-v1", "Disabled"); err != nil {
		return err
	}
	if err := t.until(ctx, "a restart at the scheduled time", func(ctx context.Context) (string, bool) {
		slot := t.field(ctx, "eru/web", `{.status.history[?(@.result=="Restarted")].slot}`)
		return "", slot != ""
	}); err != nil {
		return err
	}
	if _, err := t.kubectl(ctx, "get", "eru", "web", "-o", `jsonpath={range .status.history[*]}{.slot} {.result} {.reason} written {.startedAt}{"\n"}{end}`); err != nil {
		return err
	}
	d := get(ctx, t, &appsv1.Deployment{ObjectMeta: named("web")})
	at := d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]
	if err := t.check(strings.HasSuffix(at, ":00Z"), "deployment/web was restarted for the scheduled time %s", at); err != nil {
		return err
	}
	_, err := t.kubectl(ctx, "patch", "eru", "web", "--type=merge", "-p", `{"spec":{"enabled":false}}`)
	return err
}
