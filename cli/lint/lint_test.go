// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/cli/manifest"
)

func check(t *testing.T, text string) []lint.Finding {
	t.Helper()
	found, _ := lint.Check(manifest.Parse("x.yaml", []byte(text)), "default", nil)
	return found
}

func text(t *testing.T, found []lint.Finding) string {
	t.Helper()
	var out bytes.Buffer
	if err := lint.Write(&out, found); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

const box = "apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec:\n"

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"nothing":     {box + "  image: a:1\n", ""},
		"other kinds": {"apiVersion: apps/v1\nkind: Deployment\nspec: {x: 1}\n---\napiVersion: kpack.io/v1\nkind: App\n", ""},
		"no objects":  {"a: b\n---\n5\n", "x.yaml:1: note: " + lint.None + "\nx.yaml:3: note: " + lint.None},
		"a group with a mistake": {"apiVersion: model.gihub.com/v1\nkind: ModelBox\nmetadata: {name: web}\n", `
x.yaml:1: error: ModelBox "web": no matches for kind "ModelBox" in version "model.gihub.com/v1"; set apiVersion: model.github.com/v1 and kind: ModelBox`},
		"two values": {`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"a"},"spec":{"image":"A"}}` + "\n" + `{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"b"},"spec":{}}`, `
x.yaml:1: error: ModelBox "a": spec.image: Invalid value: "A": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format: repository name (library/A) must be lowercase
x.yaml:2: error: ModelBox "b": spec.image: Required value: specify an image such as registry.example.com/team/server:1.2`},
		"names that are no texts": {box + "  image: a:1\n  envs:\n  - {name: A, value: n}\n", `
x.yaml:7: error: ModelBox "web": spec.envs[0].value: Invalid value: "boolean": spec.envs[0].value in body must be of type string: "boolean"; write it in quotes: "n"`},
		"one warning in two lines": {box + "  image: a:1\n  ports: [{port: 80}]\n  livenessProbe: {tcpSocket: {port: 80}}\n", `
x.yaml:7: warning: ModelBox "web": spec.livenessProbe: restarts a container that is not live 30 s after its start; for 30 minutes, add this to spec:
    startupProbe: {"tcpSocket":{"port":80},"periodSeconds":2,"failureThreshold":900}`},
		"a complete object of a size": {box + "  resourceType: vllm-l4\n  model: {uri: \"hf://a/b@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}\n  route: {hosts: [a.example.com], gateway: {name: a}}\n", `
x.yaml:5: warning: ModelBox "web": spec.resourceType: vllm-l4 is a size of the cluster; name its file with --sizes to check the object with it`},
		"what is wrong with any size": {box + "  resourceType: vllm-l4\n  replicas: -1\n", `
x.yaml:6: error: ModelBox "web": spec.replicas: Invalid value: -1: must be between 0 and 1073741823, inclusive
x.yaml:5: warning: ModelBox "web": spec.resourceType: vllm-l4 is a size of the cluster; name its file with --sizes to check the object with it`},
		"a model that is not pinned": {box + "  image: a:1\n  model: {uri: hf://org/name@main}\n", `
x.yaml:6: error: ModelBox "web": spec.model.uri: Invalid value: "hf://org/name@main": "main" is a branch, a tag or a short commit, which can stand for other files later; use the 40 hexadecimal digits of the commit; 'modelbox pin -f x.yaml' writes the commit`},
		"a number that something else sets": {box + "  image: a:1\n  replicas: 2\n  autoscaling: {maxReplicas: 4}\n  resources: {requests: {cpu: 1}}\n", `
x.yaml:6: warning: ModelBox "web": spec.replicas: spec.autoscaling sets it too, and each apply of this number undoes that; remove it from the manifest`},
		"one, which an apply sets as well": {box + "  image: a:1\n  replicas: 1\n  autoscaling: {maxReplicas: 4}\n  resources: {requests: {cpu: 1}}\n", `
x.yaml:6: warning: ModelBox "web": spec.replicas: spec.autoscaling sets it too, and each apply of this number undoes that; remove it from the manifest`},
		"one, beside schedules": {box + "  image: a:1\n  replicas: 1\n  schedules: [{name: a, schedule: 0 8 * * *, replicas: 2}]\n", `
x.yaml:6: warning: ModelBox "web": spec.replicas: spec.schedules sets it too, and each apply of this number undoes that; remove it from the manifest
x.yaml:7: note: ModelBox "web": spec.schedules[0]: 2 replicas from T on
x.yaml:7: note: ModelBox "web": spec.schedules[0]: 2 replicas from T on
x.yaml:7: note: ModelBox "web": spec.schedules[0]: 2 replicas from T on`},
		"no number beside what sets it": {box + "  image: a:1\n  autoscaling: {maxReplicas: 4}\n  resources: {requests: {cpu: 1}}\n", ""},
		"a port for metrics that no container lists": {"apiVersion: app.huolala.cn/v1\nkind: App\nmetadata: {name: web}\nspec:\n  image: a:1\n  monitoring:\n    port: 9100\n", `
x.yaml:7: warning: App "web": spec.monitoring.port: no container lists 9100, so nothing is scraped; add it to the ports of one`},
		"several devices of a daemon": {"apiVersion: mydomain.com/v1beta1\nkind: Genericdaemon\nmetadata: {name: web}\nspec:\n  label: a\n  image: a:1\n  resources: {limits: {nvidia.com/gpu: 8}}\n", `
x.yaml:7: warning: Genericdaemon "web": spec.resources: for several nvidia.com/gpu, mount an emptyDir of medium Memory at /dev/shm, which has 64 MiB`},
		"how an autoscaler cannot scale": {box + "  image: a:1\n  resources: {requests: {cpu: 1}}\n  autoscaling:\n    maxReplicas: 4\n    behavior:\n      scaleDown:\n        stabilizationWindowSeconds: 7200\n        policies: []\n", `
x.yaml:11: error: ModelBox "web": spec.autoscaling.behavior.scaleDown.stabilizationWindowSeconds: Invalid value: 7200: must be between 0 and 3600, inclusive
x.yaml:12: error: ModelBox "web": spec.autoscaling.behavior.scaleDown.policies: Required value: must have a policy; remove it for the default, or set selectPolicy: Disabled not to scale`},
		"errors, at their lines": {box + "  image: A b\n  ports:\n  - port: 80\n  - port: 0\n    targetPort: 1\n    name: b\n", `
x.yaml:5: error: ModelBox "web": spec.image: Invalid value: "A b": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format: repository name (library/A b) must be lowercase
x.yaml:8: error: ModelBox "web": spec.ports[1].port: Invalid value: 0: must be between 1 and 65535, inclusive`},
		"a required field, at what has to have it": {box + "  replicas: 1\n", `
x.yaml:4: error: ModelBox "web": spec.image: Required value: specify an image such as registry.example.com/team/server:1.2`},
		"unknown fields": {box + "  image: a:1\n  imag: b\n  ports:\n  - prot: 1\n    port: 1\n", `
x.yaml:6: error: ModelBox "web": spec.imag: unknown field "spec.imag"; the nearest one is spec.image
x.yaml:8: error: ModelBox "web": spec.ports[0].prot: unknown field "spec.ports[0].prot"; the nearest one is spec.ports[].port`},
		"duplicates": {"# a\n---\n" + box + "  image: a:1\n  image: b:1\n", `
x.yaml:8: error: ModelBox "web": key "image" already set in map`},
		"duplicates in JSON": {`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"web"},"spec":{"image":"a:1",` + "\n" + `"image":"b:1"}}`, `
x.yaml:2: error: ModelBox "web": key "image" already set in map`},
		"a size, of which nothing is known": {box + "  image: a:1\n  resourceType: gpu-l4\n", `
x.yaml:6: warning: ModelBox "web": spec.resourceType: gpu-l4 is a size of the cluster; name its file with --sizes to check the object with it`},
		"no size at all": {box + "  image: a:1\n  resourceType: Small\n", `
x.yaml:6: error: ModelBox "web": spec.resourceType: Invalid value: "Small": must be a DNS-1123 label: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit`},
		"a warning": {box + "  image: a\n", `
x.yaml:5: warning: ModelBox "web": spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent`},
		"errors of a model": {box + "  image: a:1\n  model:\n    uri: s3://bucket/a\n    sizeLimit: 0\n    claim: models\n", `
x.yaml:6: error: ModelBox "web": spec.model.sha256: Required value: pods find the model in spec.model.claim by its hash; set it, or remove the claim
x.yaml:8: error: ModelBox "web": spec.model.sizeLimit: Invalid value: "0": must be greater than 0`},
		"a URI that names no file": {box + "  image: a:1\n  model:\n    uri: s3://bucket/\n", `
x.yaml:7: error: ModelBox "web": spec.model.uri: Invalid value: "s3://bucket/": must have a bucket and a key: s3://bucket/key, or s3://bucket/folder/`},
		"errors of several models": {box + "  image: a:1\n  model: {uri: pvc://a}\n  models:\n  - name: draft\n    uri: pvc://b\n    include: [a]\n  - name: draft\n    uri: pvc://b\n    mountPath: /b\n", `
x.yaml:10: error: ModelBox "web": spec.models[0].include: Forbidden: selects files of hf:// and of a folder of s3://, and here is nothing to select; remove it
x.yaml:8: error: ModelBox "web": spec.models[0].mountPath: Invalid value: "/models": spec.model is mounted at /models; use a path that is neither that one, nor below or above it
x.yaml:11: error: ModelBox "web": spec.models[1].name: Duplicate value: "draft"`},
		"an alias of another URI": {box + "  image: a:1\n  modelFileURL: https://a/b\n  model:\n    uri: https://a/c\n    sha256: abc\n", `
x.yaml:6: error: ModelBox "web": spec.modelFileURL: Forbidden: is an alias of spec.model.uri, which has another value; remove one of them
x.yaml:9: error: ModelBox "web": spec.model.sha256: Invalid value: "abc": must be a SHA-256 of 64 hexadecimal digits, as sha256sum prints it`},
		"a model that can change": {box + "  image: a:1\n  model: {}\n  modelFileURL: https://models.example.com/a\n", `
x.yaml:7: warning: ModelBox "web": spec.modelFileURL: what it refers to can change; set spec.model.sha256`},
		"the volume of a model": {box + "  image: a:1\n  model:\n    uri: pvc://models\n  podTemplate:\n    spec:\n      volumes:\n      - name: model\n", `
x.yaml:11: error: ModelBox "web": spec.podTemplate.spec.volumes[0].name: Forbidden: model is the volume of spec.model; use another name, or remove spec.model`},
		"syntax": {box + "  image: [\n---\n" + box + "  image: a:1\n", `
x.yaml:5: error: cannot be parsed as YAML or JSON: did not find expected node content`},
		"another version": {"kind: ModelBox\napiVersion: model.github.com/v2\nmetadata: {name: web}\n", `
x.yaml:2: error: ModelBox "web": no matches for kind "ModelBox" in version "model.github.com/v2"; set apiVersion: model.github.com/v1`},
		"no version": {"kind: Eru\nmetadata: {name: a}\n", `
x.yaml:1: error: Eru "a": no matches for kind "Eru" in version ""; set apiVersion: mtsre.meitu.com/v1`},
		"another kind": {"apiVersion: model.github.com/v1\nkind: Modelbox\n", `
x.yaml:1: error: no matches for kind "Modelbox" in version "model.github.com/v1"; set kind: ModelBox`},
		"a name": {"apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata:\n  name: a_b\nspec: {image: a:1}\n", `
x.yaml:4: error: ModelBox "a_b": metadata.name: Invalid value: "a_b": ` + nameRule},
		"in a List": {"apiVersion: v1\nkind: List\nitems:\n- apiVersion: model.github.com/v1\n  kind: ModelBox\n  metadata: {name: web}\n  spec:\n    image: A\n", `
x.yaml:8: error: ModelBox "web": spec.image: Invalid value: "A": must be an image reference such as registry.example.com/team/server:1.2: invalid reference format: repository name (library/A) must be lowercase`},
		"the next runs of an Eru": {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec:\n  enabled: true\n", `
x.yaml:4: note: Eru "a": spec.schedule: the next restarts are at T, T, T`},
		"the next runs of a disabled Eru": {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec: {}\n", `
x.yaml:1: note: Eru "a": spec.enabled is false: it would run at T, T, T`},
		"the schema's own rules": {"apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec: []\n", `
x.yaml:4: error: ModelBox "web": spec: Invalid value: "array": spec in body must be of type object: "array"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := regexp.MustCompile(`20\d\d-\S+Z`).ReplaceAllString(text(t, check(t, tc.text)), "T")
			if diff := cmp.Diff(strings.TrimSpace(tc.want), strings.TrimSpace(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// More than ten changes in one minute of a namespace are warned of, once; windows that open,
// disabled Erus, what is skipped, and what is invalid change nothing.
func TestCrowdedMinute(t *testing.T) {
	t.Parallel()
	eru := func(n int, spec string) string {
		return strings.Repeat("---\napiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec: {enabled: true, "+spec+"}\n", n)
	}
	const app = "---\napiVersion: app.huolala.cn/v1\nkind: App\nmetadata: {name: web}\nspec:\n  image: a:1\n  schedules:\n" +
		"  - {name: a, schedule: 0 4 * * *, replicas: 1}\n  - {name: b, schedule: 30 3 * * *, timeZone: Etc/GMT-1, replicas: 2}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"ten":                {eru(10, `schedule: "30 2 * * *"`), ""},
		"eleven, and twelve": {eru(10, `schedule: "30 2 * * *"`) + app + eru(1, `schedule: "30 2 * * *"`), `x.yaml:59: warning: App "web": spec.schedules[1]: namespace default has more than 10 scheduled times at T; move some of them to other minutes`},
		"each hour":          {eru(11, `schedule: "@hourly"`), `x.yaml:55: warning: Eru "a": spec.schedule: namespace default has more than 10 scheduled times at T; move some of them to other minutes`},
		"two namespaces":     {eru(6, `schedule: "30 2 * * *"`) + strings.ReplaceAll(eru(6, `schedule: "30 2 * * *"`), "name: a", "name: a, namespace: b"), ""},
		"other minutes":      {eru(10, `schedule: "30 2 * * *"`) + eru(10, `schedule: "31 2 * * *"`), ""},
		"not within a day":   {eru(11, `schedule: "0 0 29 2 *"`), ""},
		"outside of windows": {eru(11, `schedule: "30 2 * * *", windows: [{schedule: "0 1 * * *", duration: 1h}]`), ""},
		"disabled":           {strings.ReplaceAll(eru(11, `schedule: "30 2 * * *"`), "true", "false"), ""},
		"invalid":            {eru(11, `schedule: "30 2 * * *", historyLimit: -1`), ""},
	} {
		var got []string
		for line := range strings.Lines(text(t, check(t, tc.text))) {
			if strings.Contains(line, " warning: ") {
				got = append(got, regexp.MustCompile(`20\d\d-\S+(Z|01:00)`).ReplaceAllString(strings.TrimSpace(line), "T"))
			}
		}
		if lines := strings.Join(got, "\n"); lines != tc.want {
			t.Errorf("%s: got %q, want %q", name, lines, tc.want)
		}
	}
}

// An option that names the path of a model in no volume is noted, and no other argument is.
func TestHints(t *testing.T) {
	t.Parallel()
	const model = "  image: a:1\n  model: {uri: pvc://a}\n  models:\n  - {name: draft, uri: pvc://b, mountPath: /other/draft}\n  sharedMemory: 1Gi\n"
	for args, want := range map[string]string{
		`[--model=/model]`:                   `x.yaml:10: note: ModelBox "web": spec.args[0]: /model is in no volume; spec.model is mounted at /models`,
		`[serve, -m, /modelsx/a.gguf]`:       `x.yaml:10: note: ModelBox "web": spec.args[2]: /modelsx/a.gguf is in no volume; spec.model is mounted at /models`,
		`["--model_base_path=/models/../x"]`: `x.yaml:10: note: ModelBox "web": spec.args[0]: /x is in no volume; spec.model is mounted at /models`,
		`[--model=/models, -m, /models/a/b.gguf, --model-path, /other/draft/c, --model-dir=/other, --model-store, /]`:                                 "",
		`[--model, org/name, --model=$(MODEL), --model=/$(MODEL), -m, ./models, --served-model-name=/x, --log=/var/log/a, /x, --port, "80", --model]`: "",
		`[--lora-modules, a=/x, --download-dir=/cache, --models, /x, -model, "", --model=]`:                                                           "",
	} {
		if got := strings.TrimSpace(text(t, check(t, box+model+"  args: "+args+"\n"))); got != want {
			t.Errorf("%s:\n%s", args, got)
		}
	}
	without := box + "  image: a:1\n  args: [--model=/model]\n"
	for _, manifest := range []string{without, without + "  model: {uri: pvc://a, mountPath: /model}\n",
		without + "  model: {uri: pvc://a}\n  podTemplate: {spec: {containers: [{name: web, volumeMounts: [{name: v, mountPath: /model}]}], volumes: [{name: v, emptyDir: {}}]}}\n"} {
		if got := text(t, check(t, manifest)); got != "" {
			t.Errorf("%s\n%s", manifest, got)
		}
	}
}

// A claim of the manifests that one node at a time can mount is warned of where a rolling update
// creates a pod first.
func TestClaims(t *testing.T) {
	t.Parallel()
	claim := func(namespace, mode string) string {
		return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: " + namespace + "}\nspec: {accessModes: [" + mode + "]}\n"
	}
	const (
		once    = "data is ReadWriteOnce: in a rolling update, a pod on another node waits for the one before; "
		volume  = "  podTemplate:\n    spec:\n      volumes:\n      - {name: v, persistentVolumeClaim: {claimName: data}}\n"
		volumes = "spec.podTemplate.spec.volumes[0]: " + once
		app     = "apiVersion: app.huolala.cn/v1\nkind: App\nmetadata: {name: web}\nspec:\n"
		adopted = "  selector: {app: web}\n  podTemplate:\n    metadata: {labels: {app: web}}\n    spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}\n"
	)
	for name, tc := range map[string]struct{ text, want string }{
		"a volume":          {box + "  image: a:1\n" + volume + claim("default", "ReadWriteOnce"), `x.yaml:9: warning: ModelBox "web": ` + volumes + "set spec.strategy: {type: Recreate}"},
		"before the object": {claim("default", "ReadWriteOnce") + "---\n" + box + "  image: a:1\n  model: {uri: pvc://data}\n", `x.yaml:12: warning: ModelBox "web": spec.model: ` + once + "set spec.strategy: {type: Recreate}"},
		"an App":            {app + "  image: a:1\n" + volume + claim("default", "ReadWriteOnce"), `x.yaml:9: warning: App "web": ` + volumes + "set spec.strategy: {type: Recreate}"},
		"Recreate":          {box + "  image: a:1\n  strategy: {type: Recreate}\n" + volume + claim("default", "ReadWriteOnce"), ""},
		"no spare pod":      {box + "  image: a:1\n  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}\n" + volume + claim("default", "ReadWriteOnce"), ""},
		"no pods":           {box + "  image: a:1\n  replicas: 0\n" + volume + claim("default", "ReadWriteOnce"), ""},
		"many nodes":        {box + "  image: a:1\n" + volume + claim("default", "ReadWriteOnce, ReadOnlyMany"), ""},
		"another namespace": {box + "  image: a:1\n" + volume + claim("other", "ReadWriteOnce"), ""},
		"an adopted App, whose strategy is not known": {app + "  image: a:1\n" + adopted + claim("default", "ReadWriteOnce"), ""},
	} {
		if got := strings.TrimSpace(text(t, check(t, tc.text))); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

const nameRule = `must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, starting with a letter and ending with a letter or digit`

// A finding is on one line, and what follows is indented.
func TestFindingOfSeveralLines(t *testing.T) {
	t.Parallel()
	found := []lint.Finding{{File: "a b.yaml", Line: 1, Severity: lint.Note, Rule: "Warning", Message: "two\nlines"}}
	if got := text(t, found); got != "a b.yaml:1: note: two\n    lines\n" {
		t.Errorf("got %q", got)
	}
}
