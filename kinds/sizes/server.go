// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package sizes

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// Server is the model server of a size. All fields but image are optional.
type Server struct {
	// Image, Command, Args, Envs and TerminationGracePeriodSeconds are the fields of a ModelBox. In
	// args and in the values of envs, ${model.path}, ${model.file}, ${accelerators} and ${port} are
	// replaced.
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
