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
		"none":                 {`{}`, ``},
		"https":                {`{model: {uri: "https://a.example/b"}}`, ``},
		"all of it":            {`{model: {uri: "https://a.example/b", sha256: ` + strings.ToUpper(hash) + `, mountPath: /a/b c, sizeLimit: 1, credentials: {name: a}, claim: a.b}}`, ``},
		"s3":                   {`{model: {uri: "s3://bucket/key"}}`, ``},
		"a hub":                {`{model: {uri: "` + commit + `", claim: a}}`, ``},
		"an image":             {`{model: {uri: "` + digest + `", mountPath: /a}}`, ``},
		"a claim":              {`{model: {uri: "pvc://a/b", sizeLimit: 20480Mi}}`, ``},
		"the alias":            {`{modelFileURL: "https://a.example/b"}`, ``},
		"the alias, and more":  {`{modelFileURL: "http://a.example/b", model: {sha256: ` + hash + `, uri: ""}}`, ``},
		"both, and the same":   {`{modelFileURL: "https://a.example/b", model: {uri: "https://a.example/b"}}`, ``},
		"empty, which is none": {`{modelFileURL: ""}`, ``},

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
		"a branch": {
			`{model: {uri: "hf://org/name@main"}}`,
			`spec.model.uri: Invalid value: "hf://org/name@main": "main" is a branch, a tag or a short commit, which can stand for other files later; use the 40 hexadecimal digits of the commit`,
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
spec.model.credentials.name: Required value: a name is required
spec.model.claim: Invalid value: "A": must be a DNS-1123 subdomain: at most 253 lower-case letters, digits, dashes and dots`},
		"the root":         {`{model: {uri: "https://a.example/b", mountPath: /}}`, `spec.model.mountPath: Invalid value: "/": ` + path},
		"a trailing slash": {`{model: {uri: "https://a.example/b", mountPath: /a/}}`, `spec.model.mountPath: Invalid value: "/a/": ` + path},
		"a colon":          {`{model: {uri: "https://a.example/b", mountPath: "/a:b"}}`, `spec.model.mountPath: Invalid value: "/a:b": ` + path},
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
		"the volume's name, and the mount's path": {`
model: {uri: "https://a.example/b"}
podTemplate:
  spec:
    containers: [{name: web, volumeMounts: [{name: v, mountPath: /models/}]}]
    volumes: [{name: v, emptyDir: {}}, {name: model, emptyDir: {}}]`, `
spec.podTemplate.spec.volumes[1].name: Forbidden: model is the volume of spec.model; use another name, or remove spec.model
spec.podTemplate.spec.containers[0].volumeMounts[0].mountPath: Forbidden: spec.model is mounted at /models; remove this mount, or remove spec.model`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := boxOf(t, tc.spec)
			modelbox.Default(box, nil, nil)
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
		`{}`:                                                                                  "",
	} {
		box := boxOf(t, spec)
		modelbox.Default(box, nil, nil)
		if got := strings.Join(modelbox.Warn(box), "\n"); got != want {
			t.Errorf("%s: %s", spec, got)
		}
	}
}
