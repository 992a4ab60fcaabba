// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// typeSchema is the schema of a type, or of a field, in the API server's OpenAPI v3 document:
// how Kubernetes merges it. The tests of edits take the merge semantics from it, and not from
// the code that they test.
type typeSchema struct {
	Ref        string                 `json:"$ref"`
	AllOf      []*typeSchema          `json:"allOf"`
	Type       string                 `json:"type"`
	Format     string                 `json:"format"`
	Enum       []any                  `json:"enum"`
	Required   []string               `json:"required"`
	Properties map[string]*typeSchema `json:"properties"`
	Items      *typeSchema            `json:"items"`
	Values     *typeSchema            `json:"additionalProperties"`
	ListType   string                 `json:"x-kubernetes-list-type"`
	ListKeys   []string               `json:"x-kubernetes-list-map-keys"`
	MapType    string                 `json:"x-kubernetes-map-type"`
	Unions     []union                `json:"x-kubernetes-unions"`

	// name is the name of the type without its group, such as "PodSpec"; it is empty
	// for an inlined type.
	name string
}

type union struct {
	Discriminator string            `json:"discriminator"`
	Fields        map[string]string `json:"fields-to-discriminateBy"`
}

// schemas are the types of the API server, by their name in a reference.
type schemas map[string]*typeSchema

// readSchemas reads the types of some groups and versions, such as "apis/apps/v1".
func readSchemas(config *rest.Config, groupVersions ...string) (schemas, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return nil, err
	}
	all := schemas{}
	for _, groupVersion := range groupVersions {
		data, err := paths[groupVersion].Schema("application/json")
		if err != nil {
			return nil, fmt.Errorf("reading the OpenAPI document of %s: %w", groupVersion, err)
		}
		var document struct{ Components struct{ Schemas schemas } }
		if err := json.Unmarshal(data, &document); err != nil {
			return nil, err
		}
		for name, found := range document.Components.Schemas {
			found.name = name[strings.LastIndexByte(name, '.')+1:]
			all[name] = found
		}
	}
	return all, nil
}

// of resolves a reference. Members beside the reference, such as the keys of a list, belong to
// the field and are kept.
func (s schemas) of(at *typeSchema) *typeSchema {
	if at == nil {
		return &typeSchema{}
	}
	ref := at.Ref
	if len(at.AllOf) == 1 {
		ref = at.AllOf[0].Ref
	}
	if ref == "" {
		return at
	}
	found := *s[strings.TrimPrefix(ref, "#/components/schemas/")]
	if at.MapType != "" {
		found.MapType = at.MapType
	}
	return &found
}

// child returns the type of a field, or of a value, of an object.
func (s schemas) child(of *typeSchema, field string) *typeSchema {
	if property, ok := of.Properties[field]; ok {
		return s.of(property)
	}
	return s.of(of.Values)
}

// scalar reports whether the type is a scalar in JSON.
func (t *typeSchema) scalar() bool {
	return len(t.Properties) == 0 && t.Values == nil && t.Items == nil && t.Type != "object" && t.Type != "array"
}

// atomic reports whether Kubernetes replaces a value of the type, which is so for a list
// without a marker.
func (t *typeSchema) atomic() bool {
	if t.Items != nil {
		return t.ListType == "" || t.ListType == "atomic"
	}
	return t.MapType == "atomic"
}

// explicitUnions are the types of which only one field may be set, by the API's documentation:
// most of them have no marker in the schema.
var explicitUnions = map[string][]string{
	"Probe":                   {"exec", "httpGet", "tcpSocket", "grpc"},
	"LifecycleHandler":        {"exec", "httpGet", "tcpSocket", "sleep"},
	"EnvVar":                  {"value", "valueFrom"},
	"DeploymentStrategy":      {"type", "rollingUpdate"},
	"DaemonSetUpdateStrategy": {"type", "rollingUpdate"},
	"PodSpec":                 {"serviceAccountName", "serviceAccount"}, // Two names of one field.
	"PodResourceClaim":        {"resourceClaimName", "resourceClaimTemplateName"},
}

// members returns the fields of the type of which only one may be set, or which depend on a
// discriminator.
func (t *typeSchema) members() []string {
	switch t.name {
	case "Volume", "EnvVarSource", "VolumeProjection":
		return slices.DeleteFunc(sortedKeys(t.Properties), func(field string) bool { return field == "name" })
	case "EnvFromSource":
		return []string{"configMapRef", "secretRef"}
	}
	members := slices.Clone(explicitUnions[t.name])
	for _, union := range t.Unions {
		members = append(members, sortedKeys(union.Fields)...)
		if union.Discriminator != "" {
			members = append(members, union.Discriminator)
		}
	}
	return members
}
