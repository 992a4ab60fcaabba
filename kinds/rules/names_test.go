// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestObjectName(t *testing.T) {
	const rule = "must be a valid Service name: at most 63 characters, lower-case letters, digits and dashes, " +
		"starting with a letter and ending with a letter or digit"
	long := strings.Repeat("a", 63)
	ruletest.Run(t, map[string]ruletest.Row{
		"a word":                    {`{name: web}`, ``},
		"one letter":                {`{name: w}`, ``},
		"63 characters":             {`{name: ` + long + `}`, ``},
		"64 characters":             {`{name: a` + long + `}`, `metadata.name: Invalid value: "a` + long + `": ` + rule},
		"a digit at the end":        {`{name: web-1}`, ``},
		"a digit at the start":      {`{name: 1-web}`, `metadata.name: Invalid value: "1-web": ` + rule},
		"a dash at the end":         {`{name: web-}`, `metadata.name: Invalid value: "web-": ` + rule},
		"a dot":                     {`{name: web.1}`, `metadata.name: Invalid value: "web.1": ` + rule},
		"upper case":                {`{name: Web}`, `metadata.name: Invalid value: "Web": ` + rule},
		"a generated name":          {`{generateName: web-}`, ``},
		"a generated name that ...": {`{generateName: 1-}`, `metadata.generateName: Invalid value: "1-": ` + rule},
		"a long generated name":     {`{generateName: ` + long + long + `}`, ``},
		"a name that was generated": {`{name: web-1, generateName: 1-}`, ``},
		"none":                      {`{}`, `metadata.name: Required value: name or generateName is required`},
	}, rules.ObjectName)
}

func TestLabel(t *testing.T) {
	const rule = "must be a DNS-1123 label: 1 to 63 lower-case letters, digits and dashes, starting and ending with a letter or digit"
	long := strings.Repeat("a", 63)
	ruletest.Run(t, map[string]ruletest.Row{
		"a digit at the start": {`{name: 1-web}`, ``},
		"63 characters":        {`{name: ` + long + `}`, ``},
		"64 characters":        {`{name: a` + long + `}`, `f: Invalid value: "a` + long + `": ` + rule},
		"an underscore":        {`{name: a_b}`, `f: Invalid value: "a_b": ` + rule},
		"a dot":                {`{name: a.b}`, `f: Invalid value: "a.b": ` + rule},
		"a dash at the start":  {`{name: -a}`, `f: Invalid value: "-a": ` + rule},
		"none":                 {`{}`, `f: Required value: a name is required`},
	}, func(m *metav1.ObjectMeta) field.ErrorList { return rules.Label(f, m.Name) })
}

const sha256 = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

func TestImage(t *testing.T) {
	const rule = `must be an image reference such as registry.example.com/team/server:1.2: `
	path255 := strings.Repeat("a", 255-len("library/"))
	ruletest.Run(t, map[string]ruletest.Row{
		"a name":                 {`nginx`, ``},
		"a name and a tag":       {`nginx:1.7.9`, ``},
		"a registry with a port": {`localhost:5000/team/server:v1_2.3-4`, ``},
		"a digest":               {`nginx@` + sha256, ``},
		"a tag and a digest":     {`nginx:1@` + sha256, ``},
		"sha512":                 {`nginx@sha512:` + strings.Repeat("0", 128), ``},
		"the longest repository": {path255, ``},
		"a longer repository": {
			path255 + "a",
			`f: Invalid value: "` + path255 + `a": ` + rule + `repository name must not be more than 255 characters`,
		},
		"the longest tag":           {`nginx:` + strings.Repeat("a", 128), ``},
		"a longer tag":              {`nginx:` + strings.Repeat("a", 129), `f: Invalid value: "nginx:` + strings.Repeat("a", 129) + `": ` + rule + `invalid reference format`},
		"more than 1024 characters": {strings.Repeat("a", 1025), `f: Too long: may not be more than 1024 characters`},
		"none":                      {`""`, `f: Required value: specify an image such as registry.example.com/team/server:1.2`},
		"upper case": {
			`Nginx`,
			`f: Invalid value: "Nginx": ` + rule + `invalid reference format: repository name (library/Nginx) must be lowercase`,
		},
		"a registry in upper case":      {`REG.example.com/nginx`, ``},
		"an empty tag":                  {`"nginx:"`, `f: Invalid value: "nginx:": ` + rule + `invalid reference format`},
		"a space":                       {`" nginx"`, `f: Invalid value: " nginx": ` + rule + `invalid reference format`},
		"a scheme":                      {`https://nginx`, `f: Invalid value: "https://nginx": ` + rule + `invalid reference format`},
		"a short digest":                {`nginx@sha256:abc`, `f: Invalid value: "nginx@sha256:abc": ` + rule + `invalid reference format`},
		"a digest one too short":        {`nginx@` + sha256[:len(sha256)-1], `f: Invalid value: "nginx@` + sha256[:len(sha256)-1] + `": ` + rule + `invalid checksum digest length`},
		"a digest of unknown algorithm": {`nginx@md9:` + sha256[7:], `f: Invalid value: "nginx@md9:` + sha256[7:] + `": ` + rule + `unsupported digest algorithm`},
		"an image's id": {
			`"` + sha256[7:] + `"`,
			`f: Invalid value: "` + sha256[7:] + `": ` + rule + `invalid repository name (` + sha256[7:] + `), cannot specify 64-byte hexadecimal strings`,
		},
	}, func(image *string) field.ErrorList { return rules.Image(f, *image) })
}

func TestImageWarning(t *testing.T) {
	t.Parallel()
	const (
		untagged = "f: has no tag, so the image can change; use a version tag or a digest"
		latest   = "f: the image of tag latest can change; use a version tag or a digest"
		orPull   = "; use a version tag or spec.imagePullPolicy: IfNotPresent"
	)
	for image, want := range map[string]struct{ set, unset string }{
		"":                              {},
		"nginx:1":                       {},
		"localhost:5000/nginx:1":        {},
		"nginx@" + sha256:               {},
		"nginx:latest@" + sha256:        {},
		"nginx:latest-1":                {},
		"nginx":                         {untagged, "f: has no tag" + orPull},
		"localhost:5000/nginx":          {untagged, "f: has no tag" + orPull},
		"nginx:latest":                  {latest, "f: has tag latest" + orPull},
		"localhost:5000/a/nginx:latest": {latest, "f: has tag latest" + orPull},
	} {
		if got := rules.ImageWarning(f, image, ""); got != want.set {
			t.Errorf("%q: %q, want %q", image, got, want.set)
		}
		if got := rules.ImageWarning(f, image, "spec.imagePullPolicy"); got != want.unset {
			t.Errorf("%q without a policy: %q, want %q", image, got, want.unset)
		}
	}
}

// The API server may truncate what is longer.
func TestImageWarningsAreShort(t *testing.T) {
	t.Parallel()
	spec := field.NewPath("spec")
	containers := spec.Child("podTemplate", "spec", "containers").Index(127)
	longest := spec.Child("podTemplate", "spec", "initContainers").Index(127).Child("image")
	for _, image := range []string{"a", "a:latest"} {
		for _, got := range []string{
			rules.ImageWarning(longest, image, ""), rules.ImageWarning(longest, image, "imagePullPolicy"),
			rules.ImageWarning(spec.Child("image"), image, containers.Child("imagePullPolicy").String()),
		} {
			if len(got) == 0 || len(got) > 120 {
				t.Errorf("%d characters: %s", len(got), got)
			}
		}
	}
}

// f is the path of the validated field.
var f = field.NewPath("f")
