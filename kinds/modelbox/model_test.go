// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"slices"
	"strings"
	"testing"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestModel(t *testing.T) {
	t.Parallel()
	var (
		hash   = strings.Repeat("0a", 32)
		digest = "oci://registry.example.com/team/model@sha256:" + hash
		commit = "hf://org/name@" + strings.Repeat("0a", 20)
	)
	const (
		fields = "is the init container of spec.model, of which only env, volumeMounts, securityContext, resources.limits and " +
			"resources.requests may be set; remove the other fields, or use another name"
		mounted = "may not be set for oci://, which is mounted as it is; remove it (the digest in the URI is verified, and spec.imagePullSecrets has the credentials)"
		path    = `must be an absolute path such as /models, without a colon, an empty segment, "." and ".."`
	)
	for name, tc := range map[string]struct{ spec, want string }{
		"none":                {`{}`, ``},
		"https":               {`{model: {uri: "https://a.example/b"}}`, ``},
		"all of it":           {`{model: {uri: "https://a.example/b", sha256: ` + strings.ToUpper(hash) + `, mountPath: /a/b c, sizeLimit: 1, credentials: {name: a}, claim: a.b}}`, ``},
		"a hub":               {`{model: {uri: "` + commit + `", claim: a}}`, ``},
		"an image":            {`{model: {uri: "` + digest + `", mountPath: /a}}`, ``},
		"a claim":             {`{model: {uri: "pvc://a/b", sizeLimit: 20480Mi}}`, ``},
		"the alias":           {`{modelFileURL: "https://a.example/b"}`, ``},
		"the alias, and more": {`{modelFileURL: "http://a.example/b", model: {sha256: ` + hash + `, uri: ""}}`, ``},
		"both, and the same":  {`{modelFileURL: "https://a.example/b", model: {uri: "https://a.example/b"}}`, ``},

		"nothing":   {`{model: {}}`, `spec.model.uri: Required value: such as https://models.example.com/bert.tar.zst; set it, or remove spec.model`},
		"no scheme": {`{model: {uri: a}}`, `spec.model.uri: Invalid value: "a": must begin with https://, http://, s3://, hf://, oci:// or pvc://`},
		"of the alias": {
			`{modelFileURL: "https://a.example", model: {mountPath: a}}`,
			`spec.modelFileURL: Invalid value: "https://a.example": must end with the name of a file of at most 255 bytes, such as bert.tar.zst`,
		},
		"both": {
			`{modelFileURL: "https://a.example/b", model: {uri: "https://a.example/c"}}`,
			`spec.modelFileURL: Forbidden: is an alias of spec.model.uri, which has another value; remove one of them`,
		},
		"http": {
			`{model: {uri: "http://a.example/b"}}`,
			`spec.model.sha256: Required value: http:// has nothing else that protects what is fetched; set it, or use https://`,
		},
		"a hash that is none": {
			`{model: {uri: "https://a.example/b", sha256: 0x}}`,
			`spec.model.sha256: Invalid value: "0x": must be a SHA-256 of 64 hexadecimal digits, as sha256sum prints it`,
		},
		"a hash of several files": {
			`{model: {uri: "` + commit + `", sha256: ` + hash + `}}`,
			`spec.model.sha256: Forbidden: may not be set for hf://, whose files are verified by the hashes that the hub publishes; remove it`,
		},
		"patterns":             {`{model: {uri: "` + commit + `", include: ["*.json", onnx/], exclude: ["[!a]?"], claim: a}}`, ``},
		"patterns of a folder": {`{model: {uri: "s3://bucket/a/", include: ["*"]}}`, ``},
		"patterns of one file": {
			`{model: {uri: "https://a.example/b", exclude: ["*.md"]}}`,
			`spec.model.exclude: Forbidden: selects files of hf:// and of a folder of s3://, and here is nothing to select; remove it`,
		},
		"patterns that are none": {`{model: {uri: "` + commit + `", include: ["", "[z-a]"]}}`, `
spec.model.include[0]: Invalid value: "": must be a pattern of 1 to 128 bytes without control characters, such as *.safetensors
spec.model.include[1]: Invalid value: "[z-a]": must be a pattern; [z-a] is no range of characters`},
		"too many patterns": {
			`{model: {uri: "` + commit + `", exclude: [` + strings.Repeat("a, ", 17) + `]}}`,
			`spec.model.exclude: Too many: 17: must have at most 16 items`,
		},
		"several": {`
model: {uri: "` + commit + `", claim: a}
models:
- {name: draft, uri: "` + commit + `", include: [a], claim: a, mountPath: /draft}
- {name: lora-1, uri: "s3://bucket/lora/", mountPath: /modelsx, credentials: {name: a}}
- {name: image, uri: "` + digest + `", mountPath: /b/c}
- {name: again, uri: "pvc://a/b", mountPath: /b/d}`, ``},
		"nine": {`{models: [` + strings.Repeat(`{name: a}, `, 9) + `]}`, `spec.models: Too many: 9: must have at most 8 items`},
		"in one place": {`
model: {uri: "pvc://a"}
models: [{name: a, uri: "pvc://b"}, {name: b, uri: "pvc://c", mountPath: /models/c}, {name: c, uri: "pvc://c", mountPath: /x}, {name: d, uri: "pvc://c", mountPath: /x}]`, `
spec.models[0].mountPath: Invalid value: "/models": spec.model is mounted at /models; use a path that is neither that one, nor below or above it
spec.models[1].mountPath: Invalid value: "/models/c": spec.model is mounted at /models; use a path that is neither that one, nor below or above it
spec.models[1].mountPath: Invalid value: "/models/c": spec.models[0] is mounted at /models; use a path that is neither that one, nor below or above it
spec.models[3].mountPath: Invalid value: "/x": spec.models[2] is mounted at /x; use a path that is neither that one, nor below or above it`},
		"above another one": {
			`{modelFileURL: "pvc://a", model: {mountPath: /a/b}, models: [{name: a, uri: "pvc://a", mountPath: /a}]}`,
			`spec.models[0].mountPath: Invalid value: "/a": spec.model is mounted at /a/b; use a path that is neither that one, nor below or above it`,
		},
		"one model in one claim twice": {
			`{model: {uri: "` + commit + `", claim: a}, models: [{name: a, uri: "` + commit + `", claim: a, mountPath: /a}]}`,
			`spec.models[0].claim: Invalid value: "a": has the same model for spec.model; remove one of them`,
		},
		"names": {`{models: [{uri: "pvc://a"}, {name: A, uri: "pvc://a", mountPath: /a}, {name: a--b, uri: "pvc://a", mountPath: /b}, {name: c, uri: "pvc://a", mountPath: /c}, {name: c, uri: "pvc://a", mountPath: /d}]}`, `
spec.models[0].name: Required value: the volume of the model is called by it
spec.models[1].name: Invalid value: "A": must be 1 to 40 lower-case letters, digits and single dashes, such as draft or lora-1
spec.models[2].name: Invalid value: "a--b": must be 1 to 40 lower-case letters, digits and single dashes, such as draft or lora-1
spec.models[4].name: Duplicate value: "c"`},
		"the rules of each": {`{models: [{name: a}, {name: b, uri: "http://a.example/b", sizeLimit: 0, mountPath: /b}]}`, `
spec.models[0].uri: Required value: such as https://models.example.com/bert.tar.zst; set it, or remove spec.models[0]
spec.models[1].sha256: Required value: http:// has nothing else that protects what is fetched; set it, or use https://
spec.models[1].sizeLimit: Invalid value: "0": must be greater than 0`},
		"the volume's name, and the mount's path, of another": {`
models: [{name: a, uri: "https://a.example/b", mountPath: /a}]
podTemplate: {spec: {containers: [{name: web, volumeMounts: [{name: v, mountPath: /a}]}], volumes: [{name: v, emptyDir: {}}, {name: model-a, emptyDir: {}}]}}`, `
spec.podTemplate.spec.volumes[1].name: Forbidden: model-a is the volume of spec.models[0]; use another name, or remove spec.models[0]
spec.podTemplate.spec.containers[0].volumeMounts[0].mountPath: Forbidden: spec.models[0] is mounted at /a; remove this mount, or remove spec.models[0]`},
		"a folder with a hash": {
			`{model: {uri: "s3://bucket/a/", sha256: ` + hash + `}}`,
			`spec.model.sha256: Forbidden: may not be set for a folder of a bucket, whose files are verified by the checksums that the bucket has; remove it`,
		},
		"a folder in a claim": {
			`{model: {uri: "s3://bucket/a/", claim: a}}`,
			`spec.model.claim: Forbidden: may not be set for a folder of a bucket, which can change; remove it, or use one archive with spec.model.sha256`,
		},
		"an archive that is not unpacked": {
			`{model: {uri: "https://a.example/b.tar.xz"}}`,
			`spec.model.uri: Invalid value: "https://a.example/b.tar.xz": is compressed by xz, which is not unpacked; use .tar.zst or .tar.gz`,
		},
		"an address in another form": {
			`{model: {uri: "https://0x7f.1/a"}}`,
			`spec.model.uri: Invalid value: "https://0x7f.1/a": has the host 0x7f.1, an address in an unusual form; write it as four decimal numbers`,
		},
		"a tag": {
			`{model: {uri: "oci://registry.example.com/a:1"}}`,
			`spec.model.uri: Invalid value: "oci://registry.example.com/a:1": must have the digest of the image (oci://registry.example.com/team/model@sha256:...), because a tag can stand for another one later`,
		},
		"a claim without a hash": {
			`{model: {uri: "s3://bucket/key", claim: a}}`,
			`spec.model.sha256: Required value: pods find the model in spec.model.claim by its hash; set it, or remove the claim`,
		},
		"what is wrong in the others": {
			`{model: {uri: "https://a.example/b", mountPath: a/../b, sizeLimit: 0, credentials: {}, claim: A, sha256: ` + hash + `}}`, `
spec.model.mountPath: Invalid value: "a/../b": ` + path + `
spec.model.sizeLimit: Invalid value: "0": must be greater than 0
spec.model.credentials.name: Required value: must be the name of a Secret in the same namespace
spec.model.claim: Invalid value: "A": must be the name of a PersistentVolumeClaim, which is a DNS-1123 subdomain: 1 to 253 lower-case letters, digits, dashes and dots, starting and ending with a letter or digit`},
		"the root": {`{model: {uri: "https://a.example/b", mountPath: /}}`, `spec.model.mountPath: Invalid value: "/": ` + path},
		"shared memory": {
			`{model: {uri: "https://a.example/b", mountPath: /dev/shm}, sharedMemory: 1Gi}`,
			`spec.model.mountPath: Invalid value: "/dev/shm": spec.sharedMemory is mounted there; use another path`,
		},
		"an image, with what is for others": {
			`{model: {uri: "` + digest + `", sizeLimit: 1Gi, credentials: {name: a}, claim: a, sha256: ` + hash + `}}`, `
spec.model.claim: Forbidden: ` + mounted + `
spec.model.credentials: Forbidden: ` + mounted + `
spec.model.sha256: Forbidden: ` + mounted + `
spec.model.sizeLimit: Forbidden: ` + mounted},
		"a claim, with credentials": {
			`{modelFileURL: "pvc://a/b", model: {credentials: {name: a}}}`,
			`spec.model.credentials: Forbidden: may not be set for pvc://, which is mounted as it is; remove it`,
		},

		"what may be added to the init container": {`
model: {uri: "https://a.example/b"}
podTemplate:
  spec:
    initContainers:
    - {name: a, image: a:1}
    - name: fetch-model
      env: [{name: HTTPS_PROXY, value: "http://proxy.example.com"}]
      volumeMounts: [{name: ca, mountPath: /ca}]
      resources: {limits: {memory: 1Gi}, requests: {memory: 1Gi}}
      securityContext: {runAsUser: 1000}
      command: []
    volumes: [{name: ca, configMap: {name: ca}}]`, ``},
		"a sidecar that reads the model": {`
model: {uri: "https://a.example/b"}
podTemplate: {spec: {containers: [{name: a, image: a:1, volumeMounts: [{name: model, mountPath: /m, subPath: model, readOnly: true}]}]}}`, ``},
		"what may not": {`
model: {uri: "https://a.example/b"}
podTemplate: {spec: {initContainers: [{name: fetch-model, image: a:1, restartPolicy: Always, env: [{name: A}, {name: A}]}]}}`, `
spec.podTemplate.spec.initContainers[0]: Forbidden: fetch-model ` + fields + ``},
		"Kubernetes' own rules of it": {`
model: {uri: "https://a.example/b"}
podTemplate: {spec: {initContainers: [{name: fetch-model, volumeMounts: [{name: none, mountPath: /a}]}]}}`,
			`spec.podTemplate.spec.initContainers[0].volumeMounts[0].name: Not found: "none"`},
		"an init container of that name without a model": {`{podTemplate: {spec: {initContainers: [{name: fetch-model, image: a:1}]}}}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := boxOf(t, tc.spec)
			setDefaults(box, nil)
			errs := modelbox.Validate(box)
			if got, want := ruletest.Lines(errs), strings.TrimSpace(tc.want); got != want {
				t.Errorf("errors:\n%s\nwant:\n%s", got, want)
			}
			for _, err := range errs {
				if strings.HasPrefix(err.Field, "spec.model") && !slices.Contains(rules.Unbuildable(errs), err) {
					t.Errorf("pods would be built in spite of %v", err)
				}
			}
		})
	}
}

// boxOf returns a ModelBox with a spec and an image.
func boxOf(t *testing.T, spec string) *modelv1.ModelBox {
	t.Helper()
	box := &modelv1.ModelBox{}
	box.Name = "web"
	ruletest.Read(t, spec, &box.Spec)
	box.Spec.Image = "a:1"
	return box
}

func TestModelWarnings(t *testing.T) {
	t.Parallel()
	hash := strings.Repeat("0a", 32)
	for spec, want := range map[string]string{
		`{model: {uri: "https://a.example/b"}}`:                                               "spec.model.uri: what it refers to can change; set spec.model.sha256",
		`{modelFileURL: "s3://bucket/key"}`:                                                   "spec.modelFileURL: what it refers to can change; set spec.model.sha256",
		`{model: {uri: "https://a.example/b", sha256: ` + hash + `, credentials: {name: a}}}`: "",
		`{model: {uri: "http://a.example/b", sha256: ` + hash + `}}`:                          "",
		`{model: {uri: "http://a.example/b", sha256: ` + hash + `, credentials: {name: a}}}`:  "spec.model.uri: http:// sends the credentials unencrypted; use https://",
		`{model: {uri: "pvc://a/b"}}`:                                                         "",
		`{models: [{name: a, uri: "https://a.example/b"}]}`:                                   "spec.models[0].uri: what it refers to can change; set spec.models[0].sha256",
		`{}`: "",
	} {
		box := boxOf(t, spec)
		setDefaults(box, nil)
		if got := strings.Join(modelbox.Warn(box), "\n"); got != want {
			t.Errorf("%s: %s", spec, got)
		}
	}
}
