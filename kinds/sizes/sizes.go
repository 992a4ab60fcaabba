// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sizes reads the file in which a platform defines the sizes of its cluster. It is pure.
package sizes

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
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

// Server is the model server of a size. All fields but image are optional.
type Server struct {
	// Image, Command, Args, Envs and TerminationGracePeriodSeconds are the fields of a ModelBox. In args and in the
	// values of envs, ${model.path}, ${model.file}, ${accelerators} and ${port} are replaced.
	Image                         string          `json:"image"`
	Command                       []string        `json:"command,omitempty"`
	Args                          []string        `json:"args,omitempty"`
	Envs                          []corev1.EnvVar `json:"envs,omitempty"`
	TerminationGracePeriodSeconds *int64          `json:"terminationGracePeriodSeconds,omitempty"`
	// Port is the only port, of TCP.
	Port int32 `json:"port,omitempty"`
	// ReadinessProbe is the field of a ModelBox, with httpGet, exec or grpc: without it, it is a TCP probe of Port. The
	// port of httpGet defaults to Port.
	ReadinessProbe *corev1.Probe `json:"readinessProbe,omitempty"`
	// StartupSeconds is how long the server may take until readinessProbe succeeds, 1 to 86400.
	StartupSeconds int32 `json:"startupSeconds,omitempty"`
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

// set sets the fields of a server.
func (s *Server) set(out *modelv1.ModelBoxSpec) {
	out.Image, out.Command, out.Args, out.Envs = s.Image, s.Command, s.Args, s.Envs
	out.TerminationGracePeriodSeconds = s.TerminationGracePeriodSeconds
	at := intstr.FromInt32(s.Port)
	if len(validation.IsValidPortNum(int(s.Port))) == 0 {
		out.Ports = []modelv1.Port{{Port: s.Port, TargetPort: &at, Protocol: corev1.ProtocolTCP}}
	}
	if s.ReadinessProbe == nil {
		return
	}
	out.ReadinessProbe = s.ReadinessProbe.DeepCopy()
	if get := out.ReadinessProbe.HTTPGet; get != nil && get.Port == (intstr.IntOrString{}) {
		get.Port = at
	}
	if s.StartupSeconds > 0 {
		out.StartupProbe = &corev1.Probe{
			ProbeHandler: out.ReadinessProbe.ProbeHandler, PeriodSeconds: rules.StartupPeriodSeconds,
			FailureThreshold: (s.StartupSeconds-1)/rules.StartupPeriodSeconds + 1,
		}
	}
}

// validate returns the errors of a size: those that a ModelBox with its fields has.
func (s *Size) validate(path *field.Path, name string, spec *modelv1.ModelBoxSpec) field.ErrorList {
	errs := rules.Label(path, name)
	if resourceType := modelv1.ResourceType(name); len(errs) == 0 && !modelbox.IsSize(resourceType) {
		errs = append(errs, field.Forbidden(path, "is built in; use another name"))
	}
	if len(s.Description) > maxDescription || strings.ContainsAny(s.Description, "\r\n") {
		errs = append(errs, field.Invalid(path.Child("description"), field.OmitValueType{}, fmt.Sprintf("must be one line of at most %d bytes", maxDescription)))
	}
	if len(s.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("resources", "claims"), "a size has no claims; remove them"))
	}
	if s.Scheduling != nil && s.Scheduling.PodLabels != nil {
		errs = append(errs, field.Forbidden(path.Child("scheduling", "podLabels"), "is a field of the size; use podLabels beside scheduling"))
	}
	errs = append(errs, s.Server.validate(path.Child("server"), spec)...)
	if s.Server == nil {
		spec = spec.DeepCopy()
		spec.Image = "image:1" // That of the object.
	}
	return append(errs, rules.Others(asBox(path, spec), errs)...)
}

// replaceable refuses names in the arguments and environment variables of a server that nothing replaces.
func replaceable(path *field.Path, spec *modelv1.ModelBoxSpec) field.ErrorList {
	var errs field.ErrorList
	check := func(path *field.Path, text string) {
		for _, name := range placeholder.FindAllString(text, -1) {
			if name != modelbox.ModelPath && name != modelbox.ModelFile {
				errs = append(errs, field.NotSupported(path, name, []string{modelbox.ModelPath, modelbox.ModelFile, accelerators, port}))
			}
		}
	}
	for i, arg := range spec.Args {
		check(path.Child("args").Index(i), arg)
	}
	for _, env := range spec.Envs {
		check(path.Child("envs").Key(env.Name), env.Value)
	}
	return errs
}

var placeholder = regexp.MustCompile(`\$\{[^}]*\}?`)

// validate returns the errors that a ModelBox does not have.
func (s *Server) validate(path *field.Path, spec *modelv1.ModelBoxSpec) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := replaceable(path, spec)
	if invalid := validation.IsValidPortNum(int(s.Port)); s.Port != 0 && len(invalid) > 0 {
		errs = append(errs, field.Invalid(path.Child("port"), s.Port, invalid[0]))
	}
	if s.StartupSeconds != 0 {
		errs = append(errs, rules.Between(path.Child("startupSeconds"), &s.StartupSeconds, 1, rules.MaxSeconds)...)
	}
	if probe := s.ReadinessProbe; probe == nil && s.StartupSeconds != 0 {
		errs = append(errs, field.Required(path.Child("readinessProbe"), "startupSeconds needs it"))
	} else if probe != nil && probe.HTTPGet == nil && probe.Exec == nil && probe.GRPC == nil {
		errs = append(errs, field.Required(path.Child("readinessProbe"), "must have httpGet, exec or grpc; without readinessProbe, it is a TCP probe of port"))
	}
	return errs
}

// fieldsOf are the fields of a size that set those of a ModelBox, where the names differ.
var fieldsOf = [...][2]string{
	{"scheduling.podLabels", "podLabels"}, {"strategy.rollingUpdate", "rollout"}, {"strategy", "rollout"}, {"startupProbe", "server.startupSeconds"},
	{"image", "server.image"}, {"command", "server.command"}, {"args", "server.args"}, {"envs", "server.envs"}, {"readinessProbe", "server.readinessProbe"},
	{"terminationGracePeriodSeconds", "server.terminationGracePeriodSeconds"},
}

// asBox returns the errors of a ModelBox with the fields of a size.
func asBox(path *field.Path, spec *modelv1.ModelBoxSpec) field.ErrorList {
	box := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Name: "size"}, Spec: *spec.DeepCopy()}
	box.Spec.ResourceType, box.Spec.Resources.Claims = modelv1.ResourceTypeCustom, nil
	modelbox.Default(box, nil, nil)
	errs := modelbox.Validate(box)
	for _, err := range errs {
		in := strings.TrimPrefix(err.Field, "spec.")
		for _, name := range fieldsOf {
			if rest, ok := strings.CutPrefix(in, name[0]); ok {
				in = name[1] + rest
				break
			}
		}
		err.Field = path.String() + "." + in
	}
	return errs
}
