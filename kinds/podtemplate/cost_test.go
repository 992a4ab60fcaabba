// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package podtemplate

import (
	"fmt"
	"runtime"
	"testing"

	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// maxTemplate is the size of the largest pod template that admission accepts.
const maxTemplate = 128 << 10

// hostile are templates of the largest size, whose parts make work for each other.
var hostile = map[string]func(i int) string{
	"containers": func(i int) string { return fmt.Sprintf(`{"spec":{"containers":[%s]}}`, numbered(i, `{"name":"%d"}`)) },
	"initContainers": func(i int) string {
		return fmt.Sprintf(`{"spec":{"initContainers":[%s]}}`, numbered(i, `{"name":"%d"}`))
	},
	"volumes": func(i int) string {
		return fmt.Sprintf(`{"spec":{"volumes":[%s]}}`, numbered(i, `{"name":"%d","nfs":{}}`))
	},
	"mounts": func(i int) string {
		return fmt.Sprintf(`{"spec":{"containers":[{"name":"main","volumeMounts":[%s]}]}}`, numbered(i, `{"name":"%d"}`))
	},
	"claims": func(i int) string {
		return fmt.Sprintf(`{"spec":{"resourceClaims":[%s],"containers":[{"name":"a","resources":{"claims":[%s]}}]}}`,
			numbered(i/2, `{"name":"%d"}`), numbered(i/2, `{"name":"x%d"}`))
	},
	"overlapping claims": func(i int) string {
		return fmt.Sprintf(`{"spec":{"containers":[{"name":"a","resources":{"claims":[%s,%s]}}]}}`,
			numbered(i/2, `{"name":"a","request":"%d"}`), numbered(i/2, `{"name":"b%d"}`))
	},
	"tolerations": func(i int) string {
		return fmt.Sprintf(`{"spec":{"tolerations":[%s]}}`, numbered(i, `{"key":"%d ","operator":"x"}`))
	},
	"constraints": func(i int) string {
		return fmt.Sprintf(`{"spec":{"topologySpreadConstraints":[%s]}}`, numbered(i, `{"topologyKey":"a%d"}`))
	},
	"labels":       func(i int) string { return fmt.Sprintf(`{"metadata":{"labels":{%s}}}`, numbered(i, `"%d ":""`)) },
	"annotations":  func(i int) string { return fmt.Sprintf(`{"metadata":{"annotations":{%s}}}`, numbered(i, `"%d ":""`)) },
	"nodeSelector": func(i int) string { return fmt.Sprintf(`{"spec":{"nodeSelector":{%s}}}`, numbered(i, `"%d ":""`)) },
	"pod limits": func(i int) string {
		return fmt.Sprintf(`{"spec":{"resources":{"limits":{%s}}}}`, numbered(i, `"%d ":-1`))
	},
	"hostAliases": func(i int) string { return fmt.Sprintf(`{"spec":{"hostAliases":[%s]}}`, numbered(i, `{"ip":"%d"}`)) },
	"nameservers": func(i int) string {
		return fmt.Sprintf(`{"spec":{"dnsConfig":{"nameservers":[%s]}}}`, numbered(i, `"%d"`))
	},
	"searches": func(i int) string {
		return fmt.Sprintf(`{"spec":{"dnsConfig":{"searches":[%s]}}}`, numbered(i, `"%d "`))
	},
	"sysctls": func(i int) string {
		return fmt.Sprintf(`{"spec":{"hostNetwork":true,"securityContext":{"sysctls":[%s]}}}`, numbered(i, `{"name":"net.%d"}`))
	},
	"host ports": func(i int) string {
		return fmt.Sprintf(`{"spec":{"containers":[{"name":"a","ports":[%s]}]}}`, numbered(i, `{"containerPort":1,"hostPort":2,"name":"%d"}`))
	},
	"projections": func(i int) string {
		return fmt.Sprintf(`{"spec":{"volumes":[{"name":"v","projected":{"sources":[%s]}}]}}`, numbered(i, `{"configMap":{"name":"%d "}}`))
	},
	"affinity": func(i int) string {
		return fmt.Sprintf(`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[%s]}}}}}`,
			numbered(i, `{"matchExpressions":[{"key":"%d "}]}`))
	},
	"node selector values": func(i int) string {
		return fmt.Sprintf(`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"In","values":[%s]}]}]}}}}}`,
			numbered(i, `"%d "`))
	},
	"scheduling gates": func(i int) string {
		return fmt.Sprintf(`{"spec":{"schedulingGates":[%s]}}`, numbered(i, `{"name":"%d "}`))
	},
	"match label keys": func(i int) string {
		return fmt.Sprintf(`{"spec":{"topologySpreadConstraints":[{"topologyKey":"a","maxSkew":1,"whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{%s}},"matchLabelKeys":[%s]}]}}`,
			numbered(i/2, `"%d":""`), numbered(i/2, `"%d"`))
	},
}

// The cost of a template is at most in proportion to its size.
func TestCost(t *testing.T) {
	for name, write := range hostile {
		n := 4
		for len(write(2*n)) <= maxTemplate {
			n *= 2
		}
		quarter, _ := cost(t, write(n/4))
		whole, text := cost(t, write(n))
		t.Logf("%s, %d: %d MB, a quarter of them %d MB, %d bytes of text", name, n, whole, quarter, text)
		if whole > 8*quarter+8 || text > 2*maxTemplate {
			t.Errorf("%s, %d of them: %d MB are allocated, for a quarter of them %d MB, and %d bytes of text", name, n, whole, quarter, text)
		}
	}
}

// cost returns how many MB Validate allocates, and the length of its errors in a response. A template
// above a bound is refused before: that is measured as well.
func cost(t *testing.T, data string) (megabytes uint64, text int) {
	t.Helper()
	pods := server("main")
	pods.Template = &kruntime.RawExtension{Raw: []byte(data)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	errs := rules.First(pods.Validate(nil))
	runtime.ReadMemStats(&after)
	return (after.TotalAlloc - before.TotalAlloc) >> 20, len(fmt.Sprint(errs.ToAggregate()))
}
