// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ports_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/ports"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

func TestDefaultPorts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ ports, want string }{
		"alone": {`[{port: 80}]`, `[{port: 80, targetPort: 80, protocol: TCP}]`},
		"alone, with a name": {
			`[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`, `[{port: 80, name: tcp-80, targetPort: 80, protocol: TCP}]`,
		},
		"several": {
			`[{port: 80, targetPort: http}, {port: 80, protocol: UDP, name: b}]`,
			`[{port: 80, name: tcp-80, targetPort: http, protocol: TCP}, {port: 80, name: b, targetPort: 80, protocol: UDP}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var list, want []modelv1.Port
			ruletest.Read(t, tc.ports, &list)
			ruletest.Read(t, tc.want, &want)
			ports.Default(list)
			if diff := cmp.Diff(want, list); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDefaultProbePort(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                         "",
		`[{port: 1}]`:                "1",
		`[{port: 1, targetPort: 2}]`: "2",
		`[{port: 1, protocol: UDP}]`: "",
		`[{port: 1, targetPort: a}]`: "",
		`[{port: 1, targetPort: a}, {port: 2, name: a}]`:                        "a",
		`[{port: 1, targetPort: a}, {port: 2, name: a, protocol: UDP}]`:         "",
		`[{port: 1, protocol: UDP}, {port: 1, targetPort: a}, {port: 3}]`:       "3",
		`[{port: 9, protocol: SCTP}, {port: 8, protocol: TCP}, {port: 3}]`:      "8",
		`[{port: 1, targetPort: b}, {port: 2, name: a}, {port: 2, name: bbb} ]`: "2",
	} {
		var list []modelv1.Port
		ruletest.Read(t, text, &list)
		port, ok := ports.DefaultProbePort(list)
		if got := port.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s %t, want %s", text, got, ok, want)
		}
	}
}

// f is the path of the ports.
var f = field.NewPath("f")

func TestValidate(t *testing.T) {
	const (
		number = `must be between 1 and 65535, inclusive`
		either = `must be a number between 1 and 65535, inclusive, or the name of a port`
		name   = `must be 1 to 15 lower-case letters, digits and single dashes, at least one of them a letter, with no dash at either end (RFC 6335)`
		app    = `must be an IANA service name or a prefixed name such as kubernetes.io/h2c, 1 to 253 characters`
	)
	domain := strings.TrimSuffix(strings.Repeat(strings.Repeat("a", 62)+".", 4), ".")[:251]
	ruletest.Run(t, map[string]ruletest.Row{
		"none":                       {`[]`, ``},
		"the least":                  {`[{port: 1}]`, ``},
		"the most":                   {`[{port: 65535, targetPort: 65535, nodePort: 65535, protocol: SCTP}]`, ``},
		"port 0":                     {`[{port: 0, targetPort: 1}]`, `f[0].port: Invalid value: 0: ` + number},
		"port 65536":                 {`[{port: 65536, targetPort: 1}]`, `f[0].port: Invalid value: 65536: ` + number},
		"targetPort 1":               {`[{port: 1, targetPort: 1}]`, ``},
		"targetPort 0":               {`[{port: 1, targetPort: 0}]`, `f[0].targetPort: Invalid value: 0: ` + either},
		"targetPort 65536":           {`[{port: 1, targetPort: 65536}]`, `f[0].targetPort: Invalid value: 65536: ` + either},
		"targetPort by name":         {`[{port: 1, targetPort: a-1}]`, ``},
		"targetPort, a number in \"": {`[{port: 1, targetPort: "80"}]`, `f[0].targetPort: Invalid value: "80": ` + either},
		"nodePort -1":                {`[{port: 1, nodePort: -1}]`, `f[0].nodePort: Invalid value: -1: ` + number},
		"nodePort 65536":             {`[{port: 1, nodePort: 65536}]`, `f[0].nodePort: Invalid value: 65536: ` + number},
		"a name of 15":               {`[{port: 1, name: a23456789-12345}]`, ``},
		"a name of 16":               {`[{port: 1, name: a23456789-123456}]`, `f[0].name: Invalid value: "a23456789-123456": ` + name},
		"a name without a letter":    {`[{port: 1, name: "1-2"}]`, `f[0].name: Invalid value: "1-2": ` + name},
		"a name with two dashes":     {`[{port: 1, name: a--b}]`, `f[0].name: Invalid value: "a--b": ` + name},
		"a name that ends in a dash": {`[{port: 1, name: a-}]`, `f[0].name: Invalid value: "a-": ` + name},
		"a name in upper case":       {`[{port: 1, name: A}]`, `f[0].name: Invalid value: "A": ` + name},
		"protocol UDP":               {`[{port: 1, protocol: UDP}]`, ``},
		"protocol HTTP": {
			`[{port: 1, protocol: HTTP}]`,
			`f[0].protocol: Unsupported value: "HTTP": supported values: "TCP", "UDP", "SCTP"`,
		},
		"appProtocol":          {`[{port: 1, appProtocol: kubernetes.io/h2c}]`, ``},
		"appProtocol, none":    {`[{port: 1, appProtocol: ""}]`, ``},
		"targetPort, none":     {`[{port: 1, targetPort: ""}]`, ``},
		"nodePort 0, twice":    {`[{port: 1, name: a, nodePort: 0}, {port: 2, name: b, nodePort: 0}]`, ``},
		"appProtocol, a space": {`[{port: 1, appProtocol: "a b"}]`, `f[0].appProtocol: Invalid value: "a b": ` + app},
		"appProtocol of 253":   {`[{port: 1, appProtocol: ` + domain + `/b}]`, ``},
		"appProtocol of 254": {
			`[{port: 1, appProtocol: ` + domain + `/bb}]`,
			`f[0].appProtocol: Invalid value: "` + domain + `/bb": ` + app,
		},
		"several without names": {
			`[{port: 1}, {port: 2, name: b}]`,
			`f[0].name: Required value: must be set if there is more than one port`,
		},
		"several with names": {`[{port: 1, name: a}, {port: 2, name: b}]`, ``},
		"a name twice":       {`[{port: 1, name: a}, {port: 2, name: a}]`, `f[1].name: Duplicate value: "a"`},
		"a nodePort twice": {
			`[{port: 1, name: a, nodePort: 30000}, {port: 1, protocol: UDP, name: b, nodePort: 30000}]`,
			`f[1].nodePort: Duplicate value: 30000`,
		},
		"a port in two protocols": {`[{port: 1, name: a}, {port: 1, protocol: UDP, name: b}]`, ``},
		"a port twice":            {`[{port: 1, name: a}, {port: 1, protocol: TCP, name: a}]`, `f[1]: Duplicate value: "TCP 1"`},
		"all at once": {
			`[{port: 0, name: A, protocol: X, nodePort: -1, targetPort: 0, appProtocol: "a b"}]`, `
f[0].port: Invalid value: 0: ` + number + `
f[0].targetPort: Invalid value: 0: ` + either + `
f[0].nodePort: Invalid value: -1: ` + number + `
f[0].name: Invalid value: "A": ` + name + `
f[0].protocol: Unsupported value: "X": supported values: "TCP", "UDP", "SCTP"
f[0].appProtocol: Invalid value: "a b": ` + app,
		},
	}, func(list *[]modelv1.Port) field.ErrorList { return ports.Validate(f, *list, "") })
}

func TestTooManyPorts(t *testing.T) {
	t.Parallel()
	list := manyPorts(modelv1.MaxPorts)
	if errs := ports.Validate(f, list, ""); len(errs) > 0 {
		t.Errorf("64 ports: %v", errs)
	}
	list = manyPorts(modelv1.MaxPorts + 1)
	if got, want := ruletest.Lines(ports.Validate(f, list, "")), "f: Too many: 65: must have at most 64 items"; got != want {
		t.Errorf("65 ports: %s, want %s", got, want)
	}
}

// A list that is refused for its length is not compared each with each.
func TestFarTooManyPorts(t *testing.T) {
	t.Parallel()
	list := manyPorts(100_000)
	ports.Validate(f, list, "")
	ports.ValidateTargets(f, list, nil, nil)
	ports.DefaultProbePort(list)
	ports.Default(list)
	if got := len(modelv1.ContainerPorts(list)); got > modelv1.MaxPorts {
		t.Errorf("%d container ports", got)
	}
}

func manyPorts(n int) []modelv1.Port {
	ports := make([]modelv1.Port, n)
	for i := range ports {
		ports[i] = modelv1.Port{Port: int32(i%65535) + 1, Name: "n" + strings.Repeat("a", i%8) + string(rune('a'+i/8%26))}
	}
	return ports
}

func TestValidateTargets(t *testing.T) {
	const no = `no container declares a TCP port with this name; use a number or declare the port in podTemplate`
	type pod struct {
		Ports    []modelv1.Port          `json:"ports"`
		Template *corev1.PodTemplateSpec `json:"template"`
	}
	ruletest.Run(t, map[string]ruletest.Row{
		"numbers":                  {`{ports: [{port: 1}, {port: 2, targetPort: 3}]}`, ``},
		"a name of nothing":        {`{ports: [{port: 1, targetPort: a}]}`, `f[0].targetPort: Invalid value: "a": ` + no},
		"its own name":             {`{ports: [{port: 1, name: a, targetPort: a}]}`, `f[0].targetPort: Invalid value: "a": ` + no},
		"the name of another port": {`{ports: [{port: 1, targetPort: a}, {port: 2, name: a}]}`, ``},
		"of another protocol": {
			`{ports: [{port: 1, targetPort: a}, {port: 2, name: a, protocol: UDP}]}`,
			`f[0].targetPort: Invalid value: "a": ` + no,
		},
		"UDP for UDP": {`{ports: [{port: 1, protocol: UDP, targetPort: a}, {port: 2, name: a, protocol: UDP}]}`, ``},
		"a name that the container hasn't": {
			`{ports: [{port: 1, targetPort: b}, {port: 2, name: a, targetPort: 9}, {port: 3, name: b, targetPort: 9}]}`,
			`f[0].targetPort: Invalid value: "b": ` + no,
		},
		"a name of a sidecar": {
			`{ports: [{port: 1, targetPort: a}], template: {spec: {containers: [{name: x, ports: [{name: a, containerPort: 9}]}]}}}`, ``,
		},
		"a name of a sidecar, UDP": {
			`{ports: [{port: 1, targetPort: a}], template: {spec: {containers: [{name: x, ports: [{name: a, containerPort: 9, protocol: UDP}]}]}}}`,
			`f[0].targetPort: Invalid value: "a": ` + no,
		},
		"a name of an init container that stays": {
			`{ports: [{port: 1, targetPort: a}], template: {spec: {initContainers: [{name: x, restartPolicy: Always, ports: [{name: a, containerPort: 9}]}]}}}`, ``,
		},
		"a name of an init container that ends": {
			`{ports: [{port: 1, targetPort: a}], template: {spec: {initContainers: [{name: x, ports: [{name: a, containerPort: 9}]}]}}}`,
			`f[0].targetPort: Invalid value: "a": ` + no,
		},
		"no name at all is another rule's": {`{ports: [{port: 1, targetPort: "80"}]}`, ``},
	}, func(p *pod) field.ErrorList {
		return ports.ValidateTargets(f, p.Ports, modelv1.ContainerPorts(p.Ports), p.Template)
	})
}

func TestValidateOfNodePorts(t *testing.T) {
	type service struct {
		Type  corev1.ServiceType `json:"type"`
		Ports []modelv1.Port     `json:"ports"`
	}
	ruletest.Run(t, map[string]ruletest.Row{
		"a NodePort":              {`{type: NodePort, ports: [{port: 1, nodePort: 30000}]}`, ``},
		"a LoadBalancer":          {`{type: LoadBalancer, ports: [{port: 1, nodePort: 30000}]}`, ``},
		"a ClusterIP without one": {`{type: ClusterIP, ports: [{port: 1}]}`, ``},
		"a ClusterIP": {
			`{type: ClusterIP, ports: [{name: a, port: 1}, {name: b, port: 2, nodePort: 30000}]}`,
			`f[1].nodePort: Forbidden: nodePort may not be used if serviceType is ClusterIP; remove the nodePort or change serviceType`,
		},
	}, func(s *service) field.ErrorList { return ports.Validate(f, s.Ports, s.Type) })
}

func TestNodePortWarnings(t *testing.T) {
	t.Parallel()
	var list []modelv1.Port
	ruletest.Read(t, `[{port: 1}, {port: 2, nodePort: 30000}, {port: 3, nodePort: 32767}, {port: 4, nodePort: 29999}, {port: 5, nodePort: 32768}]`, &list)
	want := []string{
		"f[3].nodePort: 29999 is outside the default range 30000-32767; the API server may refuse it",
		"f[4].nodePort: 32768 is outside the default range 30000-32767; the API server may refuse it",
	}
	if diff := cmp.Diff(want, ports.NodePortWarnings(f, list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
