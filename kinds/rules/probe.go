// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ProbeKind is the kind of a probe.
type ProbeKind int

// The three probes of a container. They share one type and differ in two rules.
const (
	Readiness ProbeKind = iota
	Liveness
	Startup
)

// Probe validates a probe of a container that declares the given ports. Nil is valid.
// Fields whose feature gates are off by default (the protocol of httpGet, the mode of
// grpc) are not validated, because the API server drops them.
func Probe(path *field.Path, probe *corev1.Probe, kind ProbeKind, ports []corev1.ContainerPort) field.ErrorList {
	if probe == nil {
		return nil
	}
	errs := oneAction(path, &probe.ProbeHandler)
	errs = append(errs, actions(path, &probe.ProbeHandler, ports)...)
	errs = append(errs, thresholds(path, probe)...)
	if kind != Readiness && probe.SuccessThreshold > 1 {
		errs = append(errs, field.Invalid(path.Child("successThreshold"), probe.SuccessThreshold,
			"must be 1 for liveness and startup probes"))
	}
	return append(errs, grace(path, probe.TerminationGracePeriodSeconds, kind)...)
}

// The timing of the default startup probe: a container may take 30 minutes to start. A longer
// period would delay the readiness of those that start at once.
const (
	StartupPeriodSeconds    = 2
	StartupFailureThreshold = 900
)

// ProbeSeconds returns the time in seconds after the start of a container at which a probe that
// always fails has failed for good, with Kubernetes' defaults for what is not set: a period of
// 10 seconds and 3 failures.
func ProbeSeconds(probe *corev1.Probe) int64 {
	period, failures := int64(probe.PeriodSeconds), int64(probe.FailureThreshold)
	return int64(probe.InitialDelaySeconds) + cmp.Or(period, 10)*cmp.Or(failures, 3)
}

// slowStart is the time in seconds after the start of a container before which a liveness
// probe should not restart it.
const slowStart = 60

// LivenessWarning returns a warning if a liveness probe can restart a container within 60
// seconds of its start, and the line that prevents it. Both are empty if there is a startup
// probe, because the liveness probe does not run before that has succeeded. path is that of
// livenessProbe.
func LivenessWarning(path string, liveness, startup *corev1.Probe) (warning, line string) {
	if liveness == nil || startup != nil || liveness.ProbeHandler == (corev1.ProbeHandler{}) {
		return "", ""
	}
	seconds := ProbeSeconds(liveness)
	if seconds > slowStart {
		return "", ""
	}
	return path + ": restarts a container that is not live " + strconv.FormatInt(seconds, 10) +
		" s after its start; for 30 minutes, add this to spec:", startupLine(&liveness.ProbeHandler)
}

// startupLine returns the line that adds a startup probe with an action, as JSON, which is YAML
// as well. An action for which a warning has no room, of 120 characters, is described.
func startupLine(action *corev1.ProbeHandler) string {
	const most = 120
	text, err := json.Marshal(action)
	if err == nil {
		line := "startupProbe: " + string(text[:len(text)-1]) + `,"periodSeconds":2,"failureThreshold":900}`
		if len(line) <= most {
			return line
		}
	}
	return "spec.startupProbe: set the action of livenessProbe, periodSeconds: 2 and failureThreshold: 900"
}

func oneAction(path *field.Path, handler *corev1.ProbeHandler) field.ErrorList {
	n := 0
	for _, set := range [...]bool{handler.Exec != nil, handler.HTTPGet != nil, handler.TCPSocket != nil, handler.GRPC != nil} {
		if set {
			n++
		}
	}
	switch n {
	case 0:
		return field.ErrorList{field.Required(path, "must specify one of exec, httpGet, tcpSocket and grpc")}
	case 1:
		return nil
	}
	return field.ErrorList{field.Forbidden(path, "may not specify more than one of exec, httpGet, tcpSocket and grpc")}
}

func actions(path *field.Path, handler *corev1.ProbeHandler, ports []corev1.ContainerPort) field.ErrorList {
	var errs field.ErrorList
	if exec := handler.Exec; exec != nil && len(exec.Command) == 0 {
		errs = append(errs, field.Required(path.Child("exec", "command"), "a command is required"))
	}
	if get := handler.HTTPGet; get != nil {
		errs = append(errs, httpGet(path, get, ports)...)
	}
	if tcp := handler.TCPSocket; tcp != nil {
		errs = append(errs, probePort(path, "tcpSocket", tcp.Port, ports)...)
	}
	if grpc := handler.GRPC; grpc != nil {
		errs = append(errs, PortNumber(func() *field.Path { return path.Child("grpc", "port") }, grpc.Port)...)
	}
	return errs
}

func httpGet(path *field.Path, get *corev1.HTTPGetAction, ports []corev1.ContainerPort) field.ErrorList {
	errs := probePort(path, "httpGet", get.Port, ports)
	if schemes := []corev1.URIScheme{corev1.URISchemeHTTP, corev1.URISchemeHTTPS}; get.Scheme != "" && !slices.Contains(schemes, get.Scheme) {
		errs = append(errs, field.NotSupported(path.Child("httpGet", "scheme"), get.Scheme, schemes))
	}
	for i := range get.HTTPHeaders {
		if name := get.HTTPHeaders[i].Name; len(validation.IsHTTPHeaderName(name)) > 0 {
			errs = append(errs, field.Invalid(path.Child("httpGet", "httpHeaders").Index(i).Child("name"), name,
				"must consist of letters, digits and dashes"))
		}
	}
	return errs
}

// probePort validates the port of an action. The kubelet resolves a name among the ports
// of the probe's own container, whatever their protocol.
func probePort(path *field.Path, action string, port intstr.IntOrString, ports []corev1.ContainerPort) field.ErrorList {
	at := func() *field.Path { return path.Child(action, "port") }
	if errs := PortNumberOrName(at, port); len(errs) > 0 {
		return errs
	}
	named := func(p corev1.ContainerPort) bool { return p.Name == port.StrVal }
	if port.Type == intstr.String && !slices.ContainsFunc(ports, named) {
		return field.ErrorList{field.Invalid(at(), port.StrVal,
			"the container has no port with this name; use a number or the name of one of its ports")}
	}
	return nil
}

func thresholds(path *field.Path, probe *corev1.Probe) field.ErrorList {
	var errs field.ErrorList
	for _, t := range [...]struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", probe.InitialDelaySeconds},
		{"timeoutSeconds", probe.TimeoutSeconds},
		{"periodSeconds", probe.PeriodSeconds},
		{"successThreshold", probe.SuccessThreshold},
		{"failureThreshold", probe.FailureThreshold},
	} {
		if t.value < 0 {
			errs = append(errs, field.Invalid(path.Child(t.name), t.value, "must be greater than or equal to 0; 0 means the default of Kubernetes"))
		}
	}
	return errs
}

func grace(path *field.Path, seconds *int64, kind ProbeKind) field.ErrorList {
	switch {
	case seconds == nil:
		return nil
	case kind == Readiness:
		return field.ErrorList{field.Forbidden(path.Child("terminationGracePeriodSeconds"),
			"may not be set for readiness probes")}
	case *seconds < 1:
		return field.ErrorList{field.Invalid(path.Child("terminationGracePeriodSeconds"), *seconds, "must be greater than 0")}
	}
	return nil
}
