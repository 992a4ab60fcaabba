// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// args returns the command line. The kubelet expands $(NAME) in it, so each $ is doubled, which
// the kubelet makes one again.
func (p *Pod) args(models []Model, mirrors []string) []string {
	first := &models[0]
	out := []string{"--models=" + p.list(models)}
	if len(models) == 1 && first.Name == "" {
		out = first.args()
	}
	for _, mirror := range mirrors {
		out = append(out, mirrorFlag+mirror)
	}
	if len(models) == 1 && first.Name == "" && first.Claim != "" {
		out = append(out, "--shared")
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "$", "$$")
	}
	return out
}

// args returns the flags of spec.model where it is the only one.
func (m *Model) args() []string {
	out := []string{"--uri=" + m.URI}
	if m.SHA256 != "" {
		out = append(out, "--sha256="+strings.ToLower(m.SHA256))
	}
	out = append(out, "--volume="+volumePath, "--directory="+m.Directory(), "--size-limit="+strconv.FormatInt(m.SizeLimit.Value(), 10))
	for _, pattern := range m.Include {
		out = append(out, "--include="+pattern)
	}
	for _, pattern := range m.Exclude {
		out = append(out, "--exclude="+pattern)
	}
	return out
}

// list returns the models as JSON.
func (p *Pod) list(models []Model) string {
	list := make([]modeluri.Argument, len(models))
	for i := range models {
		m := &models[i]
		list[i] = modeluri.Argument{
			Name: m.Name, URI: m.URI, SHA256: strings.ToLower(m.SHA256), Volume: pathOf(p.volumeOf(m)), Directory: m.Directory(),
			SizeLimit: m.SizeLimit.Value(), Shared: m.Claim != "", Include: m.Include, Exclude: m.Exclude, EnvPrefix: m.envPrefix(),
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // A URI with & stays readable.
	_ = encoder.Encode(list)     // Texts and numbers can always be encoded.
	return strings.TrimSpace(out.String())
}

// Fetched returns the URI of spec.model that a container fetches, and the digest that it verifies,
// "" for none.
func Fetched(c *corev1.Container) (uri, digest string) {
	for _, arg := range c.Args {
		name, value, _ := strings.Cut(strings.ReplaceAll(arg, "$$", "$"), "=")
		switch name {
		case "--uri":
			uri = value
		case "--sha256":
			digest = "sha256:" + value
		case "--models":
			var list []modeluri.Argument
			if err := json.Unmarshal([]byte(value), &list); err == nil && len(list) > 0 && list[0].Name == "" {
				uri = list[0].URI
				if list[0].SHA256 != "" {
					digest = "sha256:" + list[0].SHA256
				}
			}
		}
	}
	return uri, digest
}
