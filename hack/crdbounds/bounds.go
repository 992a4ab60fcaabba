// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"strings"
)

// quantityPattern matches the quantities that Go can decode, and calculate with, at
// bounded cost. Kubernetes' own pattern also allows a fraction in the exponent, which
// cannot be decoded, and exponents of any length. A sign is not allowed, because no
// field here may be negative.
const quantityPattern = `^([0-9]{1,18}(\.[0-9]{0,9})?|\.[0-9]{1,9})(([KMGTPE]i)|[numkMGTPE]|([eE][+-]?[0-9]{1,2}))?$`

// vendoredQuantityPattern is the pattern that controller-gen generates for a quantity.
const vendoredQuantityPattern = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`

// timePattern is the format in which metav1.Time is encoded. The format date-time alone
// also allows offsets, with which a time in the year 9999 may be in the year 10000 in
// UTC, which Go can decode but not encode. It also allows fractions of a second, which
// are lost when Go encodes the time.
const timePattern = `^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$`

const (
	maxQuantityLength = 32
	// maxQuantityInteger is the maximum of a quantity that is an integer in JSON. Like
	// the pattern, it allows 18 digits.
	maxQuantityInteger = 1e18
	// maxStep is the largest step of a rollout: see MaxRollingUpdate of api/model/v1.
	maxStep       = 1<<30 - 1
	maxTimeLength = int64(len("2006-01-02T15:04:05Z"))
	// maxExactInteger is the largest integer that every client decodes exactly: many of
	// them, and the validation of the schema, convert integers to floating-point numbers.
	maxExactInteger = 1<<53 - 1
	// maxMapSize bounds the resources of a container: CPU, memory and extended
	// resources.
	maxMapSize = 128
)

// A textBound bounds the length of the strings whose path has a suffix. No bound refuses
// a value that a pod can have: names have Kubernetes' own limits, and texts without a limit
// have that of Linux for a variable or a word of a command line (MAX_ARG_STRLEN), which is
// also that of a whole spec at admission (MaxBytes of kinds/rules).
type textBound struct {
	suffix string
	length int64
}

const maxText = 128 << 10

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
	{".imagePullSecrets[].name", 253},
	{".credentials.name", 253},
	{".strategy.type", 64},
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

// listBounds are the maximum lengths of lists, by the suffix of their path.
var listBounds = []textBound{
	{".exec.command", 1024},
	{".httpHeaders", 1024},
	{".resources.claims", 256},
}

// boundNode bounds one node of a schema.
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
	case strings.Contains(path, ".strategy."): // The rest is in a marker.
		set(schema, "maxLength", int64(len("100%")))
		between(schema, 0, maxStep)
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

// boundInteger bounds a number by the range of its Go type. No number of a pod spec or
// of a status is negative.
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

// atMost sets the bound of the first suffix that the path has.
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

// set sets a value, unless a marker has set it.
func set[T any](schema map[string]any, key string, value T) {
	if schema[key] == nil {
		schema[key] = value
	}
}
