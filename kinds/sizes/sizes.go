// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sizes reads the file in which a platform defines the sizes of its cluster. It is pure.
package sizes

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// MaxBytes is the maximum length of a file in bytes, that of a ConfigMap.
	MaxBytes = 1 << 20
	// MaxSizes is the maximum number of sizes in a file.
	MaxSizes = 128
	// maxDescription is the maximum length of a description in bytes.
	maxDescription = 256
)

// Size is a size as a file has it. All fields are optional.
type Size struct {
	// Description is one line for users, of at most 256 bytes.
	Description string `json:"description,omitempty"`
	// Resources are those of the main container. Requests default to limits. They have no claims.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
	// Scheduling, without podLabels, and SharedMemory are the fields of a ModelBox.
	Scheduling   *modelv1.Scheduling `json:"scheduling,omitempty"`
	SharedMemory *resource.Quantity  `json:"sharedMemory,omitempty"`
	// PodLabels is scheduling.podLabels of a ModelBox.
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// Rollout is strategy.rollingUpdate of a ModelBox.
	Rollout *appsv1.RollingUpdateDeployment `json:"rollout,omitempty"`
	// Server is the model server. With it, an object needs no image.
	Server *Server `json:"server,omitempty"`
}

// File is a file of sizes.
type File struct {
	// Sizes are the sizes by their names, which are DNS-1123 labels.
	Sizes map[string]Size `json:"sizes"`
}

var root = field.NewPath("sizes")

// Parse reads a file in YAML or JSON, strictly. With an error, no size of it is to be used.
func Parse(data []byte) (modelbox.Sizes, field.ErrorList) {
	file, errs := Decode(data)
	if len(errs) > 0 {
		return nil, errs
	}
	out := modelbox.Sizes{}
	for _, name := range slices.Sorted(maps.Keys(file.Sizes)) {
		size := file.Sizes[name]
		spec := size.spec()
		errs = append(errs, size.validate(root.Key(name), name, spec)...)
		out[modelv1.ResourceType(name)] = spec
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return out, nil
}

// Decode reads a file, strictly, and does not look into its values.
func Decode(data []byte) (*File, field.ErrorList) {
	none := field.NewPath("(file)")
	if len(data) > MaxBytes {
		return nil, field.ErrorList{field.TooLong(none, "", MaxBytes)}
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(none, field.OmitValueType{}, err.Error())}
	}
	file := &File{}
	unknown, err := kjson.UnmarshalStrict(text, file)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(none, field.OmitValueType{}, err.Error())}
	}
	var errs field.ErrorList
	for _, err := range unknown {
		path := none
		if at, ok := errors.AsType[kjson.FieldError](err); ok {
			path = field.NewPath(at.FieldPath())
		}
		errs = append(errs, field.Forbidden(path, "a size has no such field; check its name and its position"))
	}
	if len(file.Sizes) > MaxSizes {
		errs = append(errs, field.TooMany(root, len(file.Sizes), MaxSizes))
	}
	return file, errs
}

// spec returns the fields of a ModelBox that a size defines.
func (s *Size) spec() *modelv1.ModelBoxSpec {
	r := s.Resources.DeepCopy()
	for name, limit := range r.Limits {
		if _, set := r.Requests[name]; !set {
			if r.Requests == nil {
				r.Requests = corev1.ResourceList{}
			}
			r.Requests[name] = limit
		}
	}
	out := &modelv1.ModelBoxSpec{Resources: r, Scheduling: s.Scheduling, SharedMemory: s.SharedMemory}
	if len(s.PodLabels) > 0 {
		out.Scheduling = cmp.Or(s.Scheduling.DeepCopy(), &modelv1.Scheduling{})
		out.Scheduling.PodLabels = s.PodLabels
	}
	if s.Rollout != nil {
		out.Strategy = &appsv1.DeploymentStrategy{RollingUpdate: s.Rollout}
	}
	if s.Server == nil {
		return out
	}
	s.Server.set(out)
	return modelbox.ReplaceInServer(out, accelerators, countOf(r), port, strconv.Itoa(int(s.Server.Port)))
}

// What the server may name of its size.
const (
	accelerators = "${accelerators}"
	port         = "${port}"
)

// countOf returns the number of accelerators in the limits, 0 if there are none.
func countOf(r *corev1.ResourceRequirements) string {
	count := r.Limits[corev1.ResourceName(rules.Device(r))]
	return count.String()
}
