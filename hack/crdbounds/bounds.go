// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
)

// quantityPattern is the part of Kubernetes' quantities that Go decodes, and computes
// with, at bounded cost. Kubernetes' own pattern admits a fraction in the exponent,
// which cannot be decoded, and exponents without end. A sign is left out, because no
// field here may be negative.
const quantityPattern = `^([0-9]{1,18}(\.[0-9]{0,9})?|\.[0-9]{1,9})(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,2}))?$`

// vendoredQuantityPattern is how controller-gen marks a quantity.
const vendoredQuantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// timePattern is the form in which metav1.Time is written. The format date-time alone
// admits offsets, with which a time of the year 9999 is one of the year 10000 in UTC:
// Go reads that, and cannot write it. It also admits fractions, which are lost when
// Go writes the time.
const timePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$`

const (
	maxQuantityLength = 32
	// maxQuantityInteger is what a quantity without quotation marks may be at most; as
	// the pattern, 18 digits.
	maxQuantityInteger = 1e18
	// maxStep is the largest step of a rollout: see MaxRollingUpdate of api/model/v1.
	maxStep       = 1<<30 - 1
	maxTimeLength = int64(len("2006-01-02T15:04:05Z"))
	// maxExactInteger is the largest integer that each client reads as it was
	// written: larger ones go through floating-point numbers in many of them, and in
	// the schema's own comparison.
	maxExactInteger = 1<<53 - 1
	// maxMapSize bounds the resources of a container: CPU, memory and each sort of
	// device.
	maxMapSize = 128
)

// A textBound bounds the length of the strings whose path ends so. None refuses what
// a pod can have: names are as long as Kubernetes lets them be, and texts that it
// does not bound as long as the ConfigMap that they might come from.
type textBound struct {
	suffix string
	length int64
}

const maxText = 1 << 20

var textBounds = []textBound{
	{".apiVersion", 253},
	{".kind", 63},
	{".envs[].name", 4096},
	{".envs[].value", maxText},
	{".exec.command[]", maxText},
	{".envFrom[].prefix", 4096},
	{"KeyRef.key", 253},
	{"KeyRef.name", 253},
	{"fileKeyRef.path", 4096},
	{"fileKeyRef.volumeName", 63},
	{"fieldRef.fieldPath", 1024},
	{"resourceFieldRef.containerName", 63},
	{"resourceFieldRef.resource", 512},
	{"MapRef.name", 253},
	{"secretRef.name", 253},
	{".claims[].name", 253},
	{".claims[].request", 253},
	{".grpc.mode", 64},
	{".grpc.service", 4096},
	{".host", 1024},
	{".httpHeaders[].name", 1024},
	{".httpHeaders[].value", 65536},
	{".httpGet.path", 65536},
	{".httpGet.protocol", 64},
	{".httpGet.scheme", 64},
}

// listBounds are the lengths of lists, by the end of their path.
var listBounds = []textBound{
	{".exec.command", 1024},
	{".httpHeaders", 1024},
	{".resources.claims", 256},
}

// boundNode bounds one node.
func boundNode(path string, schema map[string]any) error {
	if schema["x-kubernetes-int-or-string"] == true {
		return boundIntOrString(path, schema)
	}
	switch schema["type"] {
	case "string":
		return boundText(path, schema)
	case "integer":
		boundInteger(path, schema)
	case "array":
		return atMost(schema, "maxItems", path, listBounds)
	case "object":
		if schema["additionalProperties"] != nil {
			set(schema, "maxProperties", int64(maxMapSize))
		}
	case "boolean":
	default:
		return fmt.Errorf("%s is of the type %v, for which no bound is known", path, schema["type"])
	}
	return nil
}

func boundIntOrString(path string, schema map[string]any) error {
	switch {
	case schema["pattern"] == vendoredQuantityPattern:
		schema["pattern"] = quantityPattern
		set(schema, "maxLength", int64(maxQuantityLength))
		between(schema, 0, maxQuantityInteger)
	case isPort(path):
		set(schema, "maxLength", int64(15)) // The name of a port (RFC 6335).
		between(schema, 1, 65535)
	case strings.HasSuffix(path, ".rollingUpdate"): // The rest is in a marker.
		between(schema, 1, maxStep)
	default:
		return fmt.Errorf("%s is an int-or-string for which no bound is known", path)
	}
	return nil
}

func boundText(path string, schema map[string]any) error {
	if schema["format"] == "date-time" {
		schema["pattern"] = timePattern
		set(schema, "maxLength", maxTimeLength)
		return nil
	}
	if schema["enum"] != nil {
		return nil
	}
	return atMost(schema, "maxLength", path, textBounds)
}

// boundInteger bounds a number by what its Go type holds. None of a pod's, and none
// of status, is negative.
func boundInteger(path string, schema map[string]any) {
	switch {
	case isPort(path):
		between(schema, 1, 65535)
	case schema["format"] == "int32":
		between(schema, 0, math.MaxInt32)
	default:
		between(schema, 0, maxExactInteger)
	}
}

func isPort(path string) bool {
	return strings.HasSuffix(path, ".port") || strings.HasSuffix(path, ".targetPort")
}

func between(schema map[string]any, minimum, maximum float64) {
	set(schema, "minimum", minimum)
	set(schema, "maximum", maximum)
}

// atMost sets a bound that is looked up by the end of the path.
func atMost(schema map[string]any, key, path string, bounds []textBound) error {
	if schema[key] != nil {
		return nil
	}
	for _, known := range bounds {
		if strings.HasSuffix(path, known.suffix) {
			schema[key] = known.length
			return nil
		}
	}
	return fmt.Errorf("%s has no %s: set it with a marker, or here if its type is Kubernetes' own", path, key)
}

// set keeps what a marker has set.
func set[T any](schema map[string]any, key string, value T) {
	if schema[key] == nil {
		schema[key] = value
	}
}
