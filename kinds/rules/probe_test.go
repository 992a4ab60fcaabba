// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

var ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {ContainerPort: 81}}

func TestProbe(t *testing.T) {
	const (
		one    = `must specify one of exec, httpGet, tcpSocket and grpc`
		only   = `may not specify more than one of exec, httpGet, tcpSocket and grpc`
		number = `must be between 1 and 65535, inclusive`
		either = `must be a number between 1 and 65535, inclusive, or the name of a port`
		least  = `must be greater than or equal to 0; 0 means the default of Kubernetes`
	)
	ruletest.Run(t, map[string]ruletest.Row{
		"exec":              {`{exec: {command: [a]}}`, ``},
		"exec of nothing":   {`{exec: {command: []}}`, `f.exec.command: Required value: a command is required`},
		"tcpSocket":         {`{tcpSocket: {port: 9, host: h}}`, ``},
		"tcpSocket by name": {`{tcpSocket: {port: http}}`, ``},
		"an unknown name": {
			`{tcpSocket: {port: a}}`,
			`f.tcpSocket.port: Invalid value: "a": the container has no port with this name; use a number or the name of one of its ports`,
		},
		"no name":            {`{tcpSocket: {port: ""}}`, `f.tcpSocket.port: Invalid value: "": ` + either},
		"port 0":             {`{tcpSocket: {port: 0}}`, `f.tcpSocket.port: Invalid value: 0: ` + either},
		"port 65536":         {`{tcpSocket: {port: 65536}}`, `f.tcpSocket.port: Invalid value: 65536: ` + either},
		"httpGet":            {`{httpGet: {port: 65535}}`, ``},
		"httpGet, all of it": {`{httpGet: {port: http, path: /a, scheme: HTTPS, httpHeaders: [{name: X-A, value: ""}]}}`, ``},
		"httpGet, a scheme": {
			`{httpGet: {port: 1, scheme: http}}`,
			`f.httpGet.scheme: Unsupported value: "http": supported values: "HTTP", "HTTPS"`,
		},
		"httpGet, a header": {
			`{httpGet: {port: 1, httpHeaders: [{name: A, value: ""}, {name: "A B", value: ""}]}}`,
			`f.httpGet.httpHeaders[1].name: Invalid value: "A B": must consist of letters, digits and dashes`,
		},
		"httpGet, its port": {
			`{httpGet: {port: a}}`,
			`f.httpGet.port: Invalid value: "a": the container has no port with this name; use a number or the name of one of its ports`,
		},
		"HTTP2":            {`{httpGet: {port: 1, protocol: HTTP2}}`, ``},
		"another protocol": {`{httpGet: {port: 1, protocol: HTTP3, host: h}}`, ``}, // The API server drops it.
		"grpc":             {`{grpc: {port: 1, service: ""}}`, ``},
		"grpc, port 0":     {`{grpc: {port: 0}}`, `f.grpc.port: Invalid value: 0: ` + number},
		"grpc, its mode":   {`{grpc: {port: 1, mode: tls}}`, ``}, // The API server drops it.
		"no action":        {`{periodSeconds: 5}`, `f: Required value: ` + one},
		"two actions":      {`{exec: {command: [a]}, grpc: {port: 1}}`, `f: Forbidden: ` + only},
		"two wrong actions": {
			`{exec: {}, grpc: {port: 0}}`,
			"f: Forbidden: " + only + "\nf.exec.command: Required value: a command is required\nf.grpc.port: Invalid value: 0: " + number,
		},
		"all numbers 0": {
			`{grpc: {port: 1}, initialDelaySeconds: 0, timeoutSeconds: 0, periodSeconds: 0, successThreshold: 0, failureThreshold: 0}`,
			``,
		},
		"all numbers negative": {`{grpc: {port: 1}, initialDelaySeconds: -1, timeoutSeconds: -2, periodSeconds: -3, successThreshold: -4, failureThreshold: -5}`, `
f.initialDelaySeconds: Invalid value: -1: ` + least + `
f.timeoutSeconds: Invalid value: -2: ` + least + `
f.periodSeconds: Invalid value: -3: ` + least + `
f.successThreshold: Invalid value: -4: ` + least + `
f.failureThreshold: Invalid value: -5: ` + least},
	}, func(p *corev1.Probe) field.ErrorList { return rules.Probe(f, p, rules.Readiness, ports) })
}

func TestProbeKinds(t *testing.T) {
	t.Parallel()
	const (
		success = `f.successThreshold: Invalid value: 2: must be 1 for liveness and startup probes`
		grace   = `f.terminationGracePeriodSeconds: Invalid value: 0: must be greater than 0`
	)
	for _, tc := range []struct {
		kind        rules.ProbeKind
		probe, want string
	}{
		{rules.Readiness, `{grpc: {port: 1}, successThreshold: 2}`, ``},
		{rules.Liveness, `{grpc: {port: 1}, successThreshold: 1}`, ``},
		{rules.Liveness, `{grpc: {port: 1}, successThreshold: 2}`, success},
		{rules.Startup, `{grpc: {port: 1}, successThreshold: 1}`, ``},
		{rules.Startup, `{grpc: {port: 1}, successThreshold: 2}`, success},
		{rules.Readiness, `{grpc: {port: 1}, terminationGracePeriodSeconds: 1}`, `f.terminationGracePeriodSeconds: Forbidden: may not be set for readiness probes`},
		{rules.Liveness, `{grpc: {port: 1}, terminationGracePeriodSeconds: 1}`, ``},
		{rules.Liveness, `{grpc: {port: 1}, terminationGracePeriodSeconds: 0}`, grace},
		{rules.Startup, `{grpc: {port: 1}, terminationGracePeriodSeconds: 0}`, grace},
	} {
		probe := &corev1.Probe{}
		ruletest.Read(t, tc.probe, probe)
		if got := ruletest.Lines(rules.Probe(f, probe, tc.kind, nil)); got != tc.want {
			t.Errorf("kind %d, %s: %s, want %s", tc.kind, tc.probe, got, tc.want)
		}
	}
	if errs := rules.Probe(f, nil, rules.Liveness, nil); errs != nil {
		t.Errorf("no probe: %v", errs)
	}
}

func TestLivenessWarning(t *testing.T) {
	t.Parallel()
	const (
		restarts = "spec.livenessProbe: restarts a container that is not live %d s after its start; for 30 minutes, add this to spec:"
		timing   = `"periodSeconds":2,"failureThreshold":900}`
	)
	for name, tc := range map[string]struct {
		liveness string
		seconds  int
		line     string
	}{
		"Kubernetes' defaults": {`{tcpSocket: {port: 80}}`, 30, `startupProbe: {"tcpSocket":{"port":80},` + timing},
		"all is set":           {`{httpGet: {path: /healthz, port: 8080}, initialDelaySeconds: 5, periodSeconds: 7, failureThreshold: 2}`, 19, `startupProbe: {"httpGet":{"path":"/healthz","port":8080},` + timing},
		"by name":              {`{grpc: {port: 80}, timeoutSeconds: 50}`, 30, `startupProbe: {"grpc":{"port":80,"service":null},` + timing},
		"exec":                 {`{exec: {command: [cat, "/tmp/a, \"b\""]}}`, 30, `startupProbe: {"exec":{"command":["cat","/tmp/a, \"b\""]},` + timing},
		"60 s":                 {`{tcpSocket: {port: http}, initialDelaySeconds: 30}`, 60, `startupProbe: {"tcpSocket":{"port":"http"},` + timing},
		"a long action": {
			`{httpGet: {path: /healthz, port: 8080, httpHeaders: [{name: A, value: a value that is longer than a warning}]}}`, 30,
			"spec.startupProbe: set the action of livenessProbe, periodSeconds: 2 and failureThreshold: 900",
		},
		"61 s":             {`{tcpSocket: {port: 80}, initialDelaySeconds: 31}`, 0, ""},
		"a long period":    {`{tcpSocket: {port: 80}, periodSeconds: 30}`, 0, ""},
		"a high threshold": {`{tcpSocket: {port: 80}, failureThreshold: 7}`, 0, ""},
		"the largest":      {`{tcpSocket: {port: 80}, periodSeconds: 2147483647, failureThreshold: 2147483647}`, 0, ""},
		"no action":        {`{periodSeconds: 1}`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe, want := &corev1.Probe{}, ""
			ruletest.Read(t, tc.liveness, probe)
			if tc.seconds > 0 {
				want = fmt.Sprintf(restarts, tc.seconds)
			}
			warning, line := rules.LivenessWarning("spec.livenessProbe", probe, nil)
			if warning != want || line != tc.line {
				t.Errorf("%q, %q, want %q, %q", warning, line, want, tc.line)
			}
			if len(warning) > 120 || len(line) > 120 {
				t.Errorf("%d and %d characters, of which the API server may show 120", len(warning), len(line))
			}
			if warning, line := rules.LivenessWarning("spec.livenessProbe", probe, &corev1.Probe{}); warning+line != "" {
				t.Errorf("with a startup probe: %q, %q", warning, line)
			}
		})
	}
	if warning, line := rules.LivenessWarning("spec.livenessProbe", nil, nil); warning+line != "" {
		t.Errorf("without a probe: %q, %q", warning, line)
	}
}

// The line that a warning tells to add is a probe that is valid and prevents the warning.
func TestLivenessWarningSaysWhatPreventsIt(t *testing.T) {
	t.Parallel()
	liveness := &corev1.Probe{}
	ruletest.Read(t, `{httpGet: {path: "/a b?<&", port: 80}}`, liveness)
	_, line := rules.LivenessWarning("spec.livenessProbe", liveness, nil)
	var spec struct{ StartupProbe *corev1.Probe }
	if err := yaml.Unmarshal([]byte(line), &spec); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	want := &corev1.Probe{ProbeHandler: liveness.ProbeHandler, PeriodSeconds: 2, FailureThreshold: 900}
	if diff := cmp.Diff(want, spec.StartupProbe); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if seconds := rules.ProbeSeconds(want); seconds != 30*60 {
		t.Errorf("it gives a container %d s", seconds)
	}
}
