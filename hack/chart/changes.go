// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// change is what makes a field of an object in config/ a value of the chart.
type change struct {
	// kind and name are those of the object in config/. Without a name it is for all of the kind,
	// and without a kind for every object.
	kind, name string
	path       string
	// value is the path of the value below .Values. The default is what the field has.
	value string
	// text is what takes the place of the field, where that is not the value itself. With a value
	// as well, the default of the value is what the field has.
	text string
	// add is what is added to the map or the list at the path, and when a condition for the field.
	add, when string
}

const (
	deployment = "Deployment"
	pods       = "spec.template.spec"
	container  = pods + ".containers.0"

	byCertManager = `eq $.Values.certs.mode "cert-manager"`
	byProvider    = `eq $.Values.certs.mode "provided"`
	byController  = `eq $.Values.certs.mode "self-managed"`
)

// changes are applied in this order.
func changes() []change {
	all := []change{
		{path: "metadata.labels", add: `{{- include "modelbox-operator.labels" $ | nindent INDENT }}`},
		{kind: "CustomResourceDefinition", path: "metadata.annotations", add: "helm.sh/resource-policy: keep"},
		{kind: "ResourceQuota", path: "spec.scopeSelector.matchExpressions.0.values.0", value: "priorityClassName"},
		{kind: "NetworkPolicy", name: "modelbox-controller", path: "spec.egress", value: "network.controllerEgress"},
		{kind: "NetworkPolicy", name: "modelbox-tracing", path: "spec.egress", value: "tracing.egress"},
		{kind: deployment, name: "modelbox-controller", path: container + ".command.1", text: `--fetch-image={{ include "modelbox-operator.image" (list $ "controller") }}`},
		{kind: deployment, name: "modelbox-controller", path: container + ".command", add: "{{- if " + byController + " }}\n- --webhook-certificate-secret=modelbox-webhook-tls\n" +
			"- --webhook-certificate-validity={{ $.Values.certs.selfManaged.validity }}\n{{- end }}"},
		{kind: "ValidatingAdmissionPolicy", name: "modelbox-controller", path: "spec.variables.0.expression", text: "{{ " + byController + " | quote }}"},
		{kind: deployment, name: "modelbox-controller", path: container, add: withArgs(`include "modelbox-operator.controllerArgs" $`, ".")},
		{kind: deployment, name: "modelbox-webhook", path: container, add: withArgs(`include "modelbox-operator.webhookArgs" $`, ".")},
		{kind: deployment, name: "modelbox-webhook", path: pods + ".volumes.0.secret.secretName", text: `{{ include "modelbox-operator.certificate" $ | quote }}`},
		{kind: "ServiceMonitor", path: "metadata.labels", add: optional("", "monitoring.labels")},
		{kind: "PrometheusRule", path: "metadata.labels", add: optional("", "monitoring.labels")},
		{kind: "ConfigMap", path: "metadata.labels", add: optional("", "dashboard.labels")},
	}
	for _, kind := range []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"} {
		all = append(all,
			change{kind: kind, path: "metadata.annotations", when: byCertManager},
			change{kind: kind, path: "webhooks.*.clientConfig", add: "{{- if " + byProvider + " }}\ncaBundle: {{ $.Values.certs.provided.caBundle | b64enc }}\n{{- end }}"},
		)
	}
	for _, process := range processes {
		all = append(all, ofProcess(process)...)
	}
	return all
}

// ofProcess are the changes that both Deployments have.
func ofProcess(process string) []change {
	all := []change{
		{path: "spec.replicas", value: process + ".replicas"},
		{path: container + ".image", value: process + ".image", text: fmt.Sprintf(`{{ include "modelbox-operator.image" (list $ %q) | quote }}`, process)},
		{path: container + ".imagePullPolicy", value: process + ".image.pullPolicy"},
		{path: container + ".env.0.value", value: process + ".goMemLimit"},
		{path: container + ".resources", value: process + ".resources"},
		{path: pods + ".priorityClassName", value: "priorityClassName"},
		{path: pods + ".priorityClassName", when: "$.Values.priorityClassName"},
		{path: pods, add: optional("imagePullSecrets", "imagePullSecrets")},
		{path: pods, add: optional("nodeSelector", process+".nodeSelector")},
		{path: pods, add: optional("tolerations", process+".tolerations")},
	}
	for i := range all {
		all[i].kind, all[i].name = deployment, "modelbox-"+process
	}
	return all
}

// optional are the lines of a field that there is only if its value is not empty. Without a name
// these are the fields of the value.
func optional(name, value string) string {
	fields := "."
	if name != "" {
		fields = fmt.Sprintf("dict %q .", name)
	}
	return fmt.Sprintf("{{- with $.Values.%s }}\n{{- toYaml (%s) | nindent INDENT }}\n{{- end }}", value, fields)
}

func withArgs(value, text string) string {
	return "{{- with " + value + " }}\nargs:\n  {{- " + text + " | nindent INDENT }}\n{{- end }}"
}

// apply makes a change in a page, and returns what the field had.
func (c change) apply(p *page) (any, error) {
	switch {
	case c.add != "":
		return nil, p.add(c.path, c.add)
	case c.when != "":
		return nil, p.when(c.path, c.when)
	case c.text != "":
		return p.set(c.path, c.text)
	}
	had, err := p.set(c.path, "")
	p.texts[len(p.texts)-1] = actionOf("$.Values."+c.value, had)
	return had, err
}

// actionOf returns the action that writes a value of the type that a field has.
func actionOf(value string, had any) string {
	switch had.(type) {
	case map[string]any, []any:
		return "{{- toYaml " + value + " | nindent INDENT }}"
	case string:
		return "{{ " + value + " | quote }}"
	}
	return "{{ " + value + " }}"
}

// defaults are the defaults of values, by their paths.
type defaults map[string]any

// record keeps what a field has. Two fields of one value have the same.
func (d defaults) record(value string, had any) error {
	if value == "" {
		return nil
	}
	if image, ok := had.(string); ok && strings.HasSuffix(value, ".image") {
		had, _, _ = strings.Cut(image, ":")
		value += ".repository"
	}
	if before, ok := d[value]; ok && fmt.Sprint(before) != fmt.Sprint(had) {
		return fmt.Errorf("the value %s would have the defaults %v and %v", value, before, had)
	}
	d[value] = had
	return nil
}
