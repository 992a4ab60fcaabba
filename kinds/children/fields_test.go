// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package children_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
	"github.com/modelbox-operator/modelbox-operator/test/ruletest"
)

var spec = field.NewPath("spec")

const ours = `: Forbidden: may not be set, because the operator sets this label, or selects pods by it; remove it`
const theirs = `: Forbidden: may not be set, because the operator or Kubernetes sets this annotation; remove it`

func keys(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "a%02d: b, ", i)
	}
	return out.String()
}

func TestMetadata(t *testing.T) {
	ruletest.Run(t, map[string]ruletest.Row{
		"none":  {`{}`, ``},
		"empty": {`{podMetadata: {}, serviceMetadata: {labels: {}}, deploymentMetadata: {annotations: {}}}`, ``},
		"all": {`
podMetadata: {labels: {kueue.x-k8s.io/queue-name: a, app.kubernetes.io/version: "1"}, annotations: {A.example.com/b: " ", mtsre.meitu.com/eru: "true"}}
serviceMetadata: {labels: {a: ""}, annotations: {service.beta.kubernetes.io/aws-load-balancer-type: nlb}}
deploymentMetadata: {labels: {a: b}, annotations: {mtsre.meitu.com/eru: "true"}}`, ``},
		"labels of the operator": {`
podMetadata: {labels: {app.kubernetes.io/name: modelbox}}
deploymentMetadata: {labels: {app.kubernetes.io/managed-by: me}}
serviceMetadata: {labels: {theirs: a, rights.modelbox-operator.github.io/a: b}}`, `
spec.podMetadata.labels[app.kubernetes.io/name]` + ours + `
spec.deploymentMetadata.labels[app.kubernetes.io/managed-by]` + ours + `
spec.serviceMetadata.labels[rights.modelbox-operator.github.io/a]` + ours + `
spec.serviceMetadata.labels[theirs]` + ours},
		"annotations of the operator and of Kubernetes": {`
podMetadata: {annotations: {kubectl.kubernetes.io/restartedAt: now, modelbox-operator.github.io/configuration: a}}
deploymentMetadata: {annotations: {model.github.com/desired-hash: a, deployment.kubernetes.io/revision: "1"}}`, `
spec.podMetadata.annotations[kubectl.kubernetes.io/restartedAt]` + theirs + `
spec.podMetadata.annotations[modelbox-operator.github.io/configuration]` + theirs + `
spec.deploymentMetadata.annotations[deployment.kubernetes.io/revision]` + theirs + `
spec.deploymentMetadata.annotations[model.github.com/desired-hash]` + theirs},
		"a label that is none": {`{podMetadata: {labels: {a: "b c"}}}`,
			`spec.podMetadata.labels[a]: Invalid value: "b c": a valid label must be an empty string or consist of alphanumeric characters, ` +
				`'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		"an annotation that is none": {`{serviceMetadata: {annotations: {a b: c}}}`,
			`spec.serviceMetadata.annotations[a b]: Invalid value: "a b": name part must consist of alphanumeric characters, ` +
				`'-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		"too many": {`{podMetadata: {labels: {` + keys(65) + `}, annotations: {` + keys(65) + `}}, serviceMetadata: {labels: {` + keys(64) + `}}}`, `
spec.podMetadata.labels: Too many: 65: must have at most 64 items
spec.podMetadata.annotations: Too many: 65: must have at most 64 items`},
		"too long": {`{deploymentMetadata: {annotations: {a: ` + strings.Repeat("b", 1<<18) + `}}}`,
			`spec.deploymentMetadata.annotations: Too long: may not be more than 262144 bytes`},
	}, func(a *modelv1.Children) field.ErrorList {
		own := labels.Set{"app.kubernetes.io/name": "modelbox", "app.kubernetes.io/managed-by": "modelbox-operator", "theirs": "a"}
		return children.ValidateMetadata(spec, a, own)
	})
}

func TestRollout(t *testing.T) {
	const between = `Invalid value: -1: must be between 0 and `
	for deadline, rows := range map[int32]map[string]ruletest.Row{
		0: { // Not set: Kubernetes' default of 600.
			"none":     {`{}`, ``},
			"most":     {`{minReadySeconds: 599, revisionHistoryLimit: 1000}`, ``},
			"zero":     {`{minReadySeconds: 0, revisionHistoryLimit: 0}`, ``},
			"negative": {`{minReadySeconds: -1, revisionHistoryLimit: -1}`, `spec.minReadySeconds: ` + between + "86400, inclusive\nspec.revisionHistoryLimit: " + between + `1000, inclusive`},
			"too long": {`{minReadySeconds: 600}`, `spec.minReadySeconds: Invalid value: 600: must be less than progressDeadlineSeconds, which is 600; set that to more`},
		},
		4: {
			"less":      {`{minReadySeconds: 3}`, ``},
			"no less":   {`{minReadySeconds: 4}`, `spec.minReadySeconds: Invalid value: 4: must be less than progressDeadlineSeconds, which is 4; set that to more`},
			"revisions": {`{revisionHistoryLimit: 1001}`, `spec.revisionHistoryLimit: Invalid value: 1001: must be between 0 and 1000, inclusive`},
		},
	} {
		t.Run(fmt.Sprint(deadline), func(t *testing.T) {
			ruletest.Run(t, rows, func(a *modelv1.Children) field.ErrorList {
				if deadline == 0 {
					return children.ValidateRollout(spec, a, nil)
				}
				return children.ValidateRollout(spec, a, &deadline)
			})
		})
	}
}

func TestService(t *testing.T) {
	const loadBalancer = "may only be used when `type` is 'LoadBalancer'; change the type of the Service, or remove this field"
	for serviceType, rows := range map[corev1.ServiceType]map[string]ruletest.Row{
		corev1.ServiceTypeLoadBalancer: {
			"all": {`service: {loadBalancerClass: service.k8s.aws/nlb, loadBalancerSourceRanges: [10.0.0.0/8, " 2001:db8::/32"], externalTrafficPolicy: Local, internalTrafficPolicy: Local,
  publishNotReadyAddresses: true, sessionAffinity: ClientIP, trafficDistribution: PreferClose}`, ``},
			"empty": {`service: {loadBalancerClass: "", externalTrafficPolicy: "", internalTrafficPolicy: "", sessionAffinity: "", trafficDistribution: ""}`, ``},
			"wrong values": {`service: {loadBalancerClass: a b, loadBalancerSourceRanges: [10.0.0.1], externalTrafficPolicy: A, internalTrafficPolicy: B, sessionAffinity: C, trafficDistribution: D}`, `
spec.service.sessionAffinity: Unsupported value: "C": supported values: "ClientIP", "None"
spec.service.loadBalancerSourceRanges[0]: Invalid value: "10.0.0.1": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
spec.service.loadBalancerClass: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character ` +
				`(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
spec.service.externalTrafficPolicy: Unsupported value: "A": supported values: "Cluster", "Local"
spec.service.internalTrafficPolicy: Unsupported value: "B": supported values: "Cluster", "Local"
spec.service.trafficDistribution: Unsupported value: "D": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"`},
			"too many": {`service: {loadBalancerSourceRanges: [` + strings.Repeat("10.0.0.0/8, ", 65) + `]}`,
				`spec.service.loadBalancerSourceRanges: Too many: 65: must have at most 64 items`},
			"an annotation that Kubernetes reads": {`serviceMetadata: {annotations: {service.beta.kubernetes.io/load-balancer-source-ranges: a}}`,
				`spec.serviceMetadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: Invalid value: "a": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`},
		},
		corev1.ServiceTypeNodePort: {
			"its fields": {`service: {externalTrafficPolicy: Local, sessionAffinity: None, trafficDistribution: PreferSameNode}`, ``},
		},
		"Other": {
			"as of a NodePort": {`service: {loadBalancerClass: a, externalTrafficPolicy: Local}`, `spec.service.loadBalancerClass: Forbidden: ` + loadBalancer},
		},
		corev1.ServiceTypeClusterIP: {
			"none":   {`{}`, ``},
			"a name": {`service: {name: web-svc}`, ``},
			"a name that no Service has": {`service: {name: a.b}`, `spec.service.name: Invalid value: "a.b": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with ` +
				`an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`},
			"fields of other types": {`service: {loadBalancerClass: a, loadBalancerSourceRanges: [10.0.0.0/8], externalTrafficPolicy: Local}`, `
spec.service.loadBalancerSourceRanges: Forbidden: ` + loadBalancer + `
spec.service.loadBalancerClass: Forbidden: ` + loadBalancer + `
spec.service.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services; change the type of the Service, or remove this field`},
		},
	} {
		t.Run(string(serviceType), func(t *testing.T) {
			ruletest.Run(t, rows, func(a *modelv1.Children) field.ErrorList { return children.ValidateService(spec, a, serviceType) })
		})
	}
}

func TestClassChange(t *testing.T) {
	t.Parallel()
	none, empty, a, b := (*modelv1.ServiceOptions)(nil), &modelv1.ServiceOptions{}, &modelv1.ServiceOptions{LoadBalancerClass: "a"}, &modelv1.ServiceOptions{LoadBalancerClass: "b"}
	for _, tc := range []struct {
		was, now *modelv1.ServiceOptions
		refused  bool
	}{{none, empty, false}, {empty, none, false}, {a, a, false}, {none, a, true}, {a, b, true}, {a, none, true}, {a, empty, true}} {
		if errs := children.ClassChange(spec, tc.now, tc.was); (len(errs) > 0) != tc.refused {
			t.Errorf("%+v, then %+v: %v", tc.was, tc.now, errs)
		}
	}
}
