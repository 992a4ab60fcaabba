// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// exception is a rule of the operator's own, by which admission refuses what the API server
// takes. Each has its reason, and examples that are refused by it alone.
type exception struct {
	reason   string
	path     string // A regular expression for the fields.
	detail   string // And one for the sentence.
	examples []string
}

func (e exception) is(err *field.Error) bool {
	return regexp.MustCompile(`^(`+e.path+`)$`).MatchString(err.Field) && regexp.MustCompile(e.detail).MatchString(err.Error())
}

func isException(err *field.Error) bool {
	for _, e := range exceptions {
		if e.is(err) {
			return true
		}
	}
	return false
}

var exceptions = map[string]exception{
	"the operator's own labels": {
		reason:   "selectors depend on them",
		path:     `spec\.podTemplate\.metadata\.labels\[app\.kubernetes\.io/(name|instance|managed-by)\]`,
		detail:   `the operator sets this label`,
		examples: []string{`ModelBox {image: "a:1", podTemplate: {metadata: {labels: {app.kubernetes.io/name: other}}}}`},
	},
	"fields of the main container that the object has itself": {
		reason:   "one of two values would have no effect",
		path:     `spec\.podTemplate\.spec\.containers\[\d+\]\.\w+`,
		detail:   `of the main container is written in`,
		examples: []string{`ModelBox {image: "a:1", podTemplate: {spec: {containers: [{name: web, image: "b:1"}]}}}`},
	},
	"images that no container runtime can read": {
		reason:   "the API server takes any text, and the pods never start",
		path:     `spec\.image|spec\.podTemplate\.spec\.(containers|initContainers)\[\d+\]\.image`,
		detail:   `must be an image reference|write an image reference|Too long`,
		examples: []string{`App {image: "A B"}`, `App {image: "a:1", podTemplate: {spec: {containers: [{name: side, image: "b:"}]}}}`},
	},
	"directives of a strategic merge": {
		reason:   "in a map they would act on what the operator generated, and be gone from the child",
		path:     `spec\.podTemplate\..*`,
		detail:   `"\$(patch|retainKeys)"`,
		examples: []string{`App {image: "a:1", podTemplate: {spec: {nodeSelector: {$patch: replace}}}}`},
	},
	"containers of one name": {
		reason:   "the strategic merge would make one container of them",
		path:     `spec\.podTemplate\.spec\.containers\[\d+\]\.name`,
		detail:   `Duplicate value`,
		examples: []string{`App {image: "a:1", podTemplate: {spec: {containers: [{name: side, image: "b:1"}, {name: side, image: "b:1", args: [a]}]}}}`},
	},
	"named ports that no container has": {
		reason: "the kubelet looks a probe's port up in its own container, the endpoints of a Service in all: they would never be found",
		path:   `spec\.(readinessProbe|livenessProbe|startupProbe)\.(httpGet|tcpSocket)\.port|spec\.ports\[\d+\]\.targetPort`,
		detail: `the container has no port of this name|no container has a`,
		examples: []string{
			`ModelBox {image: "a:1", readinessProbe: {tcpSocket: {port: none}}}`,
			`App {image: "a:1", ports: [{port: 80, targetPort: none}]}`,
		},
	},
	"ports": {
		reason: "one list is both the container's and the Service's ports",
		path:   `spec\.ports\[\d+\](\.name|\.nodePort)?`,
		detail: `Duplicate value|a nodePort needs serviceType`,
		examples: []string{
			`App {image: "a:1", ports: [{name: a, port: 53, nodePort: 30053}, {name: b, port: 53, protocol: UDP, nodePort: 30053}]}`,
		},
	},
	"ports of the nodes": {
		reason:   "a dry run does not look at the cluster's range, which a create does",
		path:     `spec\.ports\[\d+\]\.nodePort`,
		detail:   `must be a number from 1 to 65535`,
		examples: []string{`App {image: "a:1", ports: [{port: 80, nodePort: 65536}]}`},
	},
	"words of the operator's own": {
		reason:   "the children don't have the field, or not always",
		path:     `spec\.(serviceType|resourceType|defaultProbes)`,
		detail:   `Unsupported value`,
		examples: []string{`ModelBox {image: "a:1", serviceType: none}`, `ModelBox {image: "a:1", resourceType: none, resources: {limits: {cpu: "1"}}}`, `ModelBox {image: "a:1", defaultProbes: none}`},
	},
	"resources beside a preset": {
		reason:   "the preset says the resources",
		path:     `spec\.resources`,
		detail:   `resourceType (small|medium|large) is|resourceType custom is`,
		examples: []string{`ModelBox {image: "a:1", resourceType: small, resources: {limits: {cpu: "7"}}}`},
	},
}
