// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command crdbounds sets a bound for every list, map, string and number of the CRDs in the files
// that are its arguments. Markers do that for the types of this project, but reach no field of the
// types of Kubernetes in them, whose schemas allow values that Go cannot decode, such as the
// quantity "1e.5". TestEveryNodeHasABound of the package api finds a node that has none.
package main

import (
	"errors"
	"log"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	// vendoredQuantity is the pattern that controller-gen generates; decodableQuantity matches what
	// Go decodes and calculates with at bounded cost. No field here may be negative.
	vendoredQuantity  = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	decodableQuantity = `^([0-9]{1,18}(\.[0-9]{0,9})?|\.[0-9]{1,9})(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,2}))?$`
	percentage        = `^(([1-9]?[0-9]|100)%)?$`
	// encodableTime is how metav1.Time is encoded: with an offset, a time in the year 9999 may be
	// in the year 10000 in UTC, which Go decodes and cannot encode.
	encodableTime = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$`
	// maxExactInteger is the largest integer that a floating-point number holds exactly: many
	// clients, and the validation of the schema, convert integers to one.
	maxExactInteger = 1<<53 - 1
	maxText         = 128 << 10 // Linux's limit for a variable or a word of a command line.
)

// bounds are maxLength or maxItems by the suffix of a path. None refuses a value that a pod can
// have: names have Kubernetes' own limits.
var bounds = []struct {
	length   int
	suffixes string
}{
	{63, ".kind fileKeyRef.volumeName resourceFieldRef.containerName .nodeSelector{} .podLabels{} .labels{} .tolerations[].value"},
	{16, ".scaleUp.policies .scaleDown.policies"},
	{63, ".containerResource.container .matchLabels{} .matchExpressions[].values[]"},
	{64, ".metrics[].type .target.type .matchExpressions[].operator .matchExpressions .matchExpressions[].values"},
	{64, ".strategy.type .grpc.mode .httpGet.protocol .httpGet.scheme .tolerations[].operator .tolerations[].effect"},
	{253, ".apiVersion KeyRef.key KeyRef.name MapRef.name secretRef.name .imagePullSecrets[].name .credentials.name .claims[].name .claims[].request"},
	{256, ".resources.claims"},
	{317, ".tolerations[].key .matchExpressions[].key .containerResource.name .resource.name"}, // The prefix of a label, a slash and a name.
	{512, "resourceFieldRef.resource .metric.name .describedObject.name"},
	{1024, "fieldRef.fieldPath .host .httpHeaders[].name .exec.command .httpHeaders"},
	{4096, ".envs[].name .envFrom[].prefix fileKeyRef.path .grpc.service"},
	{65536, ".httpHeaders[].value .httpGet.path"},
	{maxText, ".envs[].value .exec.command[]"},
	{256 << 10, ".annotations{}"}, // All annotations of an object together.
}

func main() {
	for _, file := range os.Args[1:] {
		data, err := os.ReadFile(file)
		crd := map[string]any{}
		if err = errors.Join(err, yaml.Unmarshal(data, &crd)); err != nil {
			log.Fatalf("crdbounds: %s: %v", file, err)
		}
		for _, version := range crd["spec"].(map[string]any)["versions"].([]any) {
			root := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
			for name, property := range root["properties"].(map[string]any) {
				if name != "metadata" { // The API server validates it.
					bound("."+name, property.(map[string]any))
				}
			}
		}
		if data, err = yaml.Marshal(crd); err == nil {
			err = os.WriteFile(file, append([]byte("---\n"), data...), 0o644)
		}
		if err != nil {
			log.Fatalf("crdbounds: %s: %v", file, err)
		}
	}
}

// bound bounds a node at a path such as .spec.envs[].name, and all nodes below it. What a marker
// has set stays.
//
//nolint:gocyclo // The rows of one table.
func bound(path string, node map[string]any) {
	set := func(key string, value any) {
		if node[key] == nil {
			node[key] = value
		}
	}
	between := func(minimum, maximum float64) { set("minimum", minimum); set("maximum", maximum) }
	isPort := strings.HasSuffix(path, ".port") || strings.HasSuffix(path, ".targetPort")
	switch {
	case node["x-kubernetes-preserve-unknown-fields"] == true:
		return // The podTemplate: admission bounds its bytes.
	case node["pattern"] == vendoredQuantity:
		node["pattern"] = decodableQuantity
		set("maxLength", 32)
		between(0, 1e18)
	case node["format"] == "date-time":
		node["pattern"] = encodableTime
		set("maxLength", len("2006-01-02T15:04:05Z"))
	case isPort:
		between(1, 65535)
		if node["x-kubernetes-int-or-string"] == true {
			set("maxLength", 15) // The name of a port (RFC 6335).
		}
	case node["x-kubernetes-int-or-string"] == true: // A step of a rollout; markers have the rest.
		set("maxLength", len("100%"))
		set("pattern", percentage)
		if strings.HasSuffix(path, ".rollingUpdate") || strings.Contains(path, ".disruption.") {
			set("minimum", 1)
		}
		between(0, 1<<30-1)
	case strings.HasSuffix(path, ".stabilizationWindowSeconds"):
		between(0, 3600)
	case strings.HasSuffix(path, ".policies[].periodSeconds"):
		between(1, 1800)
	case strings.HasSuffix(path, ".policies[].value"):
		between(1, 1<<31-1)
	case strings.HasSuffix(path, ".policies[].type"):
		set("enum", []any{"Pods", "Percent"})
	case strings.HasSuffix(path, ".selectPolicy"):
		set("enum", []any{"", "Max", "Min", "Disabled"})
	case strings.HasSuffix(path, ".tolerationSeconds"): // A negative time is 0.
		between(-maxExactInteger, maxExactInteger)
	case node["format"] == "int32":
		between(0, 1<<31-1)
	case node["type"] == "integer":
		between(0, maxExactInteger)
	case node["type"] == "string" && node["enum"] == nil:
		if length := lengthOf(path); length > 0 {
			set("maxLength", length)
		}
	case node["type"] == "array":
		if length := lengthOf(path); length > 0 {
			set("maxItems", length)
		}
		if strings.HasSuffix(path, ".policies") { // None is no direction without policies: it is the default.
			set("minItems", 1)
		}
	case node["additionalProperties"] != nil:
		set("maxProperties", 128) // CPU, memory and extended resources.
	}
	children, _ := node["properties"].(map[string]any)
	for name, child := range children {
		bound(path+"."+name, child.(map[string]any))
	}
	for key, suffix := range map[string]string{"items": "[]", "additionalProperties": "{}"} {
		if child, ok := node[key].(map[string]any); ok {
			bound(path+suffix, child)
		}
	}
}

func lengthOf(path string) int {
	for _, b := range bounds {
		for suffix := range strings.FieldsSeq(b.suffixes) {
			if strings.HasSuffix(path, suffix) {
				return b.length
			}
		}
	}
	return 0
}
