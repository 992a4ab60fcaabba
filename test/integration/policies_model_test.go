// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const (
	sha256    = "sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	fromHTTPS = "uri: https://models.example.com/bert.tar.zst, " + sha256
)

// model is a spec with a model.
func model(text string) string { return `{image: "a:1", model: {` + text + `}}` }

// alias is a spec with modelFileURL.
func alias(uri string) string { return `{image: "a:1", modelFileURL: "` + uri + `"}` }

// A delegated user may fetch what the network lets every container fetch, and names no other
// objects than those that the Namespace lists.
func TestDelegatedUsersMayHaveAModel(t *testing.T) {
	t.Parallel()
	c := user(t, "model", lists, kindsRole, delegatedRole)
	for name, text := range map[string]string{
		"https":                  model(fromHTTPS),
		"all fields":             model(fromHTTPS + `, mountPath: /m, sizeLimit: 1Gi, credentials: {name: db}, claim: models`),
		"http":                   model(`uri: "http://10.0.0.1/a", ` + sha256),
		"s3":                     model(`uri: s3://bucket/key, credentials: {name: tls}`),
		"hf":                     model(`uri: hf://org/name@0123456789012345678901234567890123456789`),
		"oci":                    model(`uri: "oci://r.io/a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"`),
		"a claim":                model(`uri: pvc://models`),
		"a directory of a claim": model(`uri: pvc://models/a/b`),
		"the alias":              alias("https://models.example.com/bert.tar.zst"),
		"a claim by the alias":   alias("pvc://models/a"),
		"both":                   `{image: "a:1", model: {uri: pvc://models/a}, modelFileURL: pvc://models/a}`,
		"the alias with fields":  `{image: "a:1", model: {mountPath: /m, uri: ""}, modelFileURL: pvc://models/a}`,
		"empty fields":           model(`uri: https://a/b, sha256: "", claim: ""`),
		"an empty alias":         alias(""),
		// The API server removes null before the policy reads the object.
		"null":           `{image: "a:1", model: null, modelFileURL: null}`,
		"null in fields": model(`uri: https://a/b, sha256: null, mountPath: null, sizeLimit: null, credentials: null, claim: null`),
		"the container that fetches": `{image: "a:1", model: {uri: https://a/b}, podTemplate: {spec: {initContainers: [{name: fetch-model,
  env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}, {name: T, valueFrom: {secretKeyRef: {name: db, key: t}}}], resources: {limits: {memory: 1Gi}},
  securityContext: {runAsUser: 1000}, volumeMounts: [{name: ca, mountPath: /etc/ssl}]}], volumes: [{name: ca, configMap: {name: settings}}]}}}`,
	} {
		if got, err := tried(t, c, modelBox, "a", parse(t, text)); got != allowed {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

const (
	notListedClaim  = "/claims of the Namespace may be used (not so: spec.model."
	notListedAlias  = "/claims of the Namespace may be used (not so: spec.modelFileURL)"
	notListedSecret = "/secrets of the Namespace may be used (not so: spec.model.credentials)"
)

// modelRefusals are specs like refusals.
var modelRefusals = map[string]struct{ text, want string }{
	"the credentials of a model":                 {model(fromHTTPS + `, credentials: {name: root}`), notListedSecret},
	"credentials in upper case":                  {model(fromHTTPS + `, credentials: {name: DB}`), notListedSecret},
	"credentials with a space":                   {model(fromHTTPS + `, credentials: {name: "db "}`), notListedSecret},
	"credentials with a comma":                   {model(fromHTTPS + `, credentials: {name: "db, tls "}`), notListedSecret},
	"credentials with an empty name":             {model(fromHTTPS + `, credentials: {name: ""}`), notListedSecret},
	"credentials without a name":                 {model(fromHTTPS + `, credentials: {}`), notListedSecret},
	"credentials of null":                        {model(fromHTTPS + `, credentials: {name: null}`), notListedSecret},
	"credentials for the alias":                  {`{image: "a:1", model: {credentials: {name: root}}, modelFileURL: "https://a/b"}`, notListedSecret},
	"a claim to fetch into":                      {model(fromHTTPS + `, claim: another`), notListedClaim + "claim)"},
	"a claim that begins like a listed one":      {model(fromHTTPS + `, claim: models-of-others`), notListedClaim + "claim)"},
	"a claim to mount":                           {model(`uri: pvc://another`), notListedClaim + "uri)"},
	"a claim with a path":                        {model(`uri: pvc://another/models`), notListedClaim + "uri)"},
	"a claim with a longer name":                 {model(`uri: pvc://models-of-others/a`), notListedClaim + "uri)"},
	"a claim in upper case":                      {model(`uri: pvc://Models/a`), notListedClaim + "uri)"},
	"a claim with a space":                       {model(`uri: "pvc:// models/a"`), notListedClaim + "uri)"},
	"a claim that is escaped":                    {model(`uri: "pvc://%61nother/a"`), notListedClaim + "uri)"},
	"a claim behind a user":                      {model(`uri: "pvc://models@another/a"`), notListedClaim + "uri)"},
	"a claim behind a query":                     {model(`uri: "pvc://another?/models"`), notListedClaim + "uri)"},
	"a claim without a name":                     {model(`uri: pvc://`), notListedClaim + "uri)"},
	"a claim without a name and with a path":     {model(`uri: pvc:///models`), notListedClaim + "uri)"},
	"a claim by the alias":                       {alias("pvc://another/a"), notListedAlias},
	"a claim by the alias, without a name":       {alias("pvc:///models"), notListedAlias},
	"a claim by the alias, beside an empty uri":  {`{image: "a:1", model: {uri: ""}, modelFileURL: pvc://another/a}`, notListedAlias},
	"a claim by the alias, beside fields":        {`{image: "a:1", model: {mountPath: /m}, modelFileURL: pvc://another/a}`, notListedAlias},
	"a claim by both":                            {`{image: "a:1", model: {uri: pvc://another/a}, modelFileURL: pvc://another/a}`, notListedClaim + "uri, spec.modelFileURL)"},
	"a Secret for the container that fetches":    {fetcher(`env: [{name: A, valueFrom: {secretKeyRef: {name: root, key: a}}}]`), "(not so: spec.podTemplate, container fetch-model)"},
	"the same by envFrom":                        {fetcher(`envFrom: [{secretRef: {name: root}}]`), "(not so: spec.podTemplate, container fetch-model)"},
	"root for the container that fetches":        {fetcher(`securityContext: {runAsUser: 0}`), "securityContext of container fetch-model"},
	"privileges for the container that fetches":  {fetcher(`securityContext: {privileged: true}`), "securityContext of container fetch-model"},
	"a claim in place of the volume of a model":  {modelWith(`{volumes: [{name: model, persistentVolumeClaim: {claimName: another}}]}`), "/claims of the Namespace may be used (not so: model)"},
	"a Secret in place of the volume of a model": {modelWith(`{volumes: [{name: model, secret: {secretName: root}}]}`), "(not so: volume model)"},
	"the host in place of the volume of a model": {modelWith(`{volumes: [{name: model, hostPath: {path: /}}]}`), "spec.podTemplate.spec.volumes: model"},
}

// modelWith is a spec with a model and a podTemplate.
func modelWith(pod string) string {
	return `{image: "a:1", model: {uri: https://a/b}, podTemplate: {spec: ` + pod + `}}`
}

// fetcher is a spec with fields of the container that fetches.
func fetcher(text string) string {
	return modelWith(`{initContainers: [{name: fetch-model, ` + text + `}]}`)
}

// An update is bounded like a create, and the model of another user that is beyond the bounds
// stays as it is, or is removed.
func TestDelegatedUsersChangeModels(t *testing.T) {
	t.Parallel()
	c := user(t, "change-model", lists, kindsRole, delegatedRole)
	admin, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	store(t, modelBox.in(admin, c.namespace), modelBox.object("listed", parse(t, model(`uri: pvc://models/a`))), false)
	store(t, modelBox.in(admin, c.namespace), modelBox.object("beyond", parse(t, model(`uri: pvc://another/a`))), false)
	for _, test := range []struct {
		name, patch string
		want        outcome
	}{
		{"listed", `{"spec":{"image":"a:2"}}`, allowed},
		{"listed", `{"spec":{"model":{"uri":"pvc://models/b"}}}`, allowed},
		{"listed", `{"spec":{"model":{"uri":"pvc://another/b"}}}`, byDelegated},
		{"listed", `{"spec":{"model":null,"modelFileURL":"pvc://another/b"}}`, byDelegated},
		{"listed", `{"spec":{"model":{"uri":"https://a/b","credentials":{"name":"root"}}}}`, byDelegated},
		{"beyond", `{"spec":{"image":"a:2"}}`, byDelegated},
		{"beyond", `{"metadata":{"labels":{"a":"b"}}}`, allowed},
		{"beyond", `{"spec":{"model":null}}`, allowed},
		{"beyond", `{"spec":{"model":{"uri":"pvc://models/a"}}}`, allowed},
	} {
		_, err := modelBox.in(c, c.namespace).Patch(t.Context(), test.name, types.MergePatchType, []byte(test.patch), metav1.PatchOptions{DryRun: dryRun})
		if got := outcomeOf(err); got != test.want {
			t.Errorf("%s, %s: %s, want %s (%v)", test.name, test.patch, got, test.want, err)
		}
	}
}

// Without annotations of the Namespace, or with empty ones, no model uses another object.
func TestDelegatedUsersHaveModelsWithoutLists(t *testing.T) {
	t.Parallel()
	c := user(t, "unlisted-model", map[string]string{virtualGroup + "/secrets": " , ", virtualGroup + "/claims": ",,"}, kindsRole, delegatedRole)
	for text, want := range map[string]outcome{
		model(fromHTTPS):                          allowed,
		model(fromHTTPS + `, claim: ""`):          allowed,
		model(fromHTTPS + `, claim: models`):      byDelegated,
		model(fromHTTPS + `, credentials: {}`):    byDelegated,
		model(`uri: pvc://models/a`):              byDelegated,
		model(`uri: "pvc://"`):                    byDelegated,
		alias("pvc:///a"):                         byDelegated,
		alias(strings.Repeat("pvc:////", 2048/8)): byDelegated,
	} {
		if got, err := tried(t, c, modelBox, "a", parse(t, text)); got != want {
			t.Errorf("%s: %s, want %s (%v)", text, got, want, err)
		}
	}
}
