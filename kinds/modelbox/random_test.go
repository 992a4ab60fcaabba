// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// seeds is the number of random histories. A thousand take half a minute.
var seeds = flag.Uint64("seeds", sampled(), "the number of random histories")

// sampled is an eighth of what "make test-long" tries.
func sampled() uint64 {
	if os.Getenv("MODELBOX_LONG") != "" {
		return 64
	}
	return 8
}

// firstSeed is the first one of the seeds of histories that are not in the corpus.
var firstSeed = flag.Uint64("first-seed", 0, "the first seed of the histories of several clients")

// random draws specs. Most are valid, and each field is sometimes not set.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 1))} }

func (r random) chance(percent int) bool { return r.IntN(100) < percent }

func one[T any](r random, of ...T) T { return of[r.IntN(len(of))] }

func (r random) spec() map[string]any {
	s := map[string]any{"image": one(r, "a:1", "nginx:1.27", "registry.example.com:5000/a/b@sha256:"+fmt.Sprintf("%064x", r.Uint64()))}
	r.maybe(30, s, "name", func() any { return one(r, "main", "nginx") })
	r.maybe(30, s, "replicas", func() any { return r.IntN(5) })
	r.maybe(30, s, "rollingUpdate", func() any { return one[any](r, 1, "5", "30%", "100%") })
	r.maybe(50, s, "ports", func() any { return r.ports() })
	r.maybe(20, s, "serviceType", func() any { return one(r, "ClusterIP", "NodePort", "LoadBalancer") })
	r.maybe(15, s, "defaultProbes", func() any { return one(r, "Enabled", "Disabled") })
	for _, probe := range []string{"readinessProbe", "livenessProbe"} {
		r.maybe(25, s, probe, func() any { return r.probe() })
	}
	r.maybe(15, s, "startupProbe", func() any { return r.startupProbe() })
	r.maybe(15, s, "progressDeadlineSeconds", func() any { return one(r, 90, 600, 2400) })
	r.strategy(s)
	r.podFields(s)
	r.maybe(20, s, "envs", func() any { return []any{map[string]any{"name": "A", "value": one(r, "1", "2")}} })
	r.maybe(10, s, "podTemplate", func() any { return map[string]any{"spec": map[string]any{"nodeName": one(r, "a", "b")}} })
	r.maybe(10, s, "paused", func() any { return true })
	r.size(s)
	return s
}

// strategy sets a strategy, and with it no other rollingUpdate than the default, which would be
// refused.
func (r random) strategy(s map[string]any) {
	r.maybe(20, s, "strategy", func() any {
		return one[any](r, map[string]any{"type": "Recreate"}, map[string]any{"type": "RollingUpdate"},
			map[string]any{"rollingUpdate": map[string]any{"maxSurge": 0, "maxUnavailable": one[any](r, 1, "50%")}})
	})
	if s["strategy"] != nil && s["rollingUpdate"] != nil && !r.chance(10) {
		s["rollingUpdate"] = "25%"
	}
}

// podFields sets fields of the pods that have no default.
func (r random) podFields(s map[string]any) {
	r.maybe(10, s, "command", func() any { return []any{"serve"} })
	r.maybe(10, s, "args", func() any { return []any{one(r, "-v", "-q")} })
	r.maybe(10, s, "imagePullPolicy", func() any { return one(r, "Always", "IfNotPresent") })
	r.maybe(10, s, "imagePullSecrets", func() any { return []any{map[string]any{"name": one(r, "a", "b")}} })
	r.maybe(10, s, "terminationGracePeriodSeconds", func() any { return one(r, 5, 60) })
	r.maybe(10, s, "scheduling", func() any {
		return map[string]any{"nodeSelector": map[string]any{"pool": one(r, "a", "b")}, "schedulerName": "s"}
	})
	r.maybe(10, s, "sharedMemory", func() any { return one(r, "1Gi", "1024Mi") })
}

// startupProbe is often one with the timing of the default, in whole or in part.
func (r random) startupProbe() map[string]any {
	p := r.probe()
	r.maybe(30, p, "periodSeconds", func() any { return 2 })
	r.maybe(30, p, "failureThreshold", func() any { return one(r, 900, 60) })
	return p
}

func (r random) maybe(percent int, s map[string]any, name string, value func() any) {
	if r.chance(percent) {
		s[name] = value()
	}
}

func (r random) size(s map[string]any) {
	switch r.IntN(11) {
	case 9, 10:
		s["resourceType"] = "llm"
		for _, name := range []string{"image", "args", "envs", "ports", "readinessProbe", "startupProbe", "terminationGracePeriodSeconds"} {
			if list, ok := s[name].([]any); !r.chance(5) || ok && len(list) == 0 {
				delete(s, name) // An empty list is as none.
			}
		}
		r.maybe(10, s, "image", func() any { return "llm:2" })
	case 7, 8:
		s["resourceType"] = one(r, "gpu", "cpu", "none")
		r.maybe(20, s, "resources", func() any { return map[string]any{"limits": map[string]any{"cpu": one(r, "4", "4000m", "3")}} })
	case 0, 1:
		s["resourceType"] = one(r, "small", "medium", "large")
	case 2:
		s["resourceType"] = "custom"
		s["resources"] = r.resources()
	case 3:
		s["resources"] = r.resources()
	case 4:
		// Refused, and in no part of it what a merge could complete to a preset.
		s["resourceType"] = one(r, "small", "medium", "large")
		s["resources"] = map[string]any{"limits": map[string]any{"cpu": "3"}}
	case 5:
		s["resourceType"] = one(r, "small", "medium", "large")
		s["resources"] = map[string]any{"limits": map[string]any{"example.com/gpu": one(r, 1, 2)}}
	}
}

// resources are often those of a preset in part. They are never so as a whole, which
// is no reason for another resourceType, and never empty, which declares nothing.
func (r random) resources() map[string]any {
	out := map[string]any{}
	for _, list := range []string{"limits", "requests"} {
		quantities := map[string]any{}
		if list == "limits" {
			quantities["ephemeral-storage"] = "1Gi"
		}
		r.maybe(60, quantities, "cpu", func() any { return one[any](r, 1, "1000m", "3", "500m", 4) })
		r.maybe(60, quantities, "memory", func() any { return one(r, "2Gi", "2048Mi", "1Gi", "8Gi") })
		r.maybe(10, quantities, "example.com/gpu", func() any { return 1 })
		if len(quantities) > 0 {
			out[list] = quantities
		}
	}
	return out
}

// ports repeat a number now and then in another protocol.
func (r random) ports() []any {
	out := []any{}
	seen := map[string]bool{}
	for range r.IntN(4) {
		port := map[string]any{"port": one(r, 80, 81, 8080, 53)}
		r.maybe(40, port, "protocol", func() any { return one(r, "TCP", "TCP", "UDP") })
		key := fmt.Sprint(port["port"], port["protocol"] == "UDP")
		if seen[key] {
			continue
		}
		seen[key] = true
		r.maybe(30, port, "targetPort", func() any { return one[any](r, 80, 8080, "http") })
		r.maybe(30, port, "name", func() any { return one(r, "http", "tcp-80", "tcp-81", "n"+fmt.Sprint(r.IntN(9))) })
		r.maybe(20, port, "nodePort", func() any { return 30000 + r.IntN(3) })
		out = append(out, port)
	}
	return out
}

func (r random) probe() map[string]any {
	p := map[string]any{}
	switch r.IntN(5) {
	case 0:
		p["httpGet"] = map[string]any{"port": one[any](r, 80, "http"), "path": "/"}
	case 1:
		p["exec"] = map[string]any{"command": []any{"true"}}
	case 2, 3:
		p["tcpSocket"] = map[string]any{"port": one[any](r, 80, 8080)}
	}
	if r.chance(40) || len(p) == 0 {
		p["periodSeconds"] = one(r, 5, 7)
	}
	return p
}

// places returns the paths of errors. Their values may differ, because a refused value may be
// merged with the stored one.
func places(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Field)
	}
	return out
}

var applies = map[string]func(*server, map[string]any) field.ErrorList{
	"server side": (*server).serverSideApply,
	"client side": (*server).clientSideApply,
}

// Applying the same manifest again writes nothing, and changes no owner.
func TestApplyAgain(t *testing.T) {
	t.Parallel()
	for name, apply := range applies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *seeds {
				s, spec := created(t, newRandom(seed), apply)
				first := s.state()
				for range 3 {
					apply(s, spec)
				}
				if diff := diff(t, first, s.state()); diff != "" {
					t.Fatalf("seed %d: applying %s again (-first +then):\n%s", seed, marshal(t, spec), diff)
				}
			}
		})
	}
}

// created draws specs until one is accepted, so that each seed has an object. About two in five
// are refused.
func created(t *testing.T, r random, apply func(*server, map[string]any) field.ErrorList) (*server, map[string]any) {
	t.Helper()
	const most = 20
	for range most {
		s, spec := &server{t: t}, r.spec()
		if len(apply(s, spec)) == 0 {
			return s, spec
		}
	}
	t.Fatalf("%d specs were refused: the generator must draw more valid ones", most)
	return nil, nil
}

// filler fills objects with any values of their types.
func filler(seed int64) *randfill.Filler {
	return randfill.NewWithSeed(seed).NilChance(0.4).NumElements(0, 4).MaxDepth(12).Funcs(
		func(meta *metav1.ObjectMeta, c randfill.Continue) {
			if c.Bool() {
				meta.Name = pick(c, "web", "web.1", "")
			}
			if c.Bool() {
				meta.ManagedFields = owned(pick(c, `{}`, unrelatedFields,
					`{"f:resources":{"f:limits":{"f:cpu":{}}}}`, `{"f:readinessProbe":{"f:periodSeconds":{}}}`))
			}
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(pick(c, "1", "2Gi", "-1", "0", "1500m", "4", "1e3"))
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = pick(c, intstr.FromInt32(80), intstr.FromInt32(-1), intstr.FromString("http"), intstr.FromString("5%"), intstr.FromString(""))
		},
		func(r *runtime.RawExtension, c randfill.Continue) {
			r.Raw = []byte(pick(c, `{}`, `[]`, `{"spec":{"containers":[{"name":"web"},{"x":1}]}}`, `{"spec":{"containers":5}}`))
		},
		func(t *modelv1.ResourceType, c randfill.Continue) {
			*t = pick[modelv1.ResourceType](c, "", "small", "large", "custom", "tiny")
		},
		func(t *corev1.ServiceType, c randfill.Continue) {
			*t = pick[corev1.ServiceType](c, "", "ClusterIP", "None")
		},
		func(p *modelv1.DefaultProbes, c randfill.Continue) {
			*p = pick[modelv1.DefaultProbes](c, "", "Disabled", "Maybe")
		},
		func(p *corev1.Protocol, c randfill.Continue) { *p = pick[corev1.Protocol](c, "", "TCP", "UDP", "X") },
		func(p *modelv1.Port, c randfill.Continue) {
			c.FillNoCustom(p)
			p.Port = int32(c.Intn(4)) + 79
			p.Name = pick(c, "", "tcp-80", "tcp-81", "http", p.Name)
		},
	)
}

func pick[T any](c randfill.Continue, of ...T) T { return of[c.Intn(len(of))] }

// The properties of defaults hold for any object, also for an invalid one.
func TestAnyObject(t *testing.T) {
	t.Parallel()
	for seed := range int64(*seeds) * 10 {
		f := filler(seed)
		first, second := &modelv1.ModelBox{}, &modelv1.ModelBox{}
		f.Fill(&first.Spec)
		f.Fill(&first.ObjectMeta)
		f.Fill(&second.Spec)
		second.ObjectMeta = first.ObjectMeta
		check(t, marshal(t, first), nil)
		check(t, marshal(t, second), first)
		check(t, marshal(t, second), defaulted(first, nil))
		// An update of one field.
		first = defaulted(first, nil)
		for _, p := range []**corev1.Probe{&first.Spec.StartupProbe, &first.Spec.LivenessProbe, &first.Spec.ReadinessProbe} {
			if *p != nil && !hasOneHandler(*p) {
				*p = nil // Admission refuses it, and a port that is added would complete it.
			}
		}
		second = first.DeepCopy()
		if seed%2 == 0 {
			f.Fill(&second.Spec.Ports)
		} else {
			f.Fill(&second.Spec.ResourceType)
		}
		check(t, marshal(t, second), first)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func hasOneHandler(p *corev1.Probe) bool {
	return slices.Contains([]corev1.ProbeHandler{{Exec: p.Exec}, {HTTPGet: p.HTTPGet}, {TCPSocket: p.TCPSocket}, {GRPC: p.GRPC}}, p.ProbeHandler) &&
		p.ProbeHandler != (corev1.ProbeHandler{})
}

// FuzzModelBox decodes any data as an object and as the stored object.
func FuzzModelBox(f *testing.F) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	for range 20 {
		f.Add(marshal(f, manifest(r.spec())), marshal(f, manifest(r.spec())))
	}
	f.Add([]byte(`{"spec":{"ports":[null,{}],"podTemplate":{"spec":{"containers":[{"name":1}]}}}}`), []byte(`{}`))
	f.Add([]byte(`{"spec":null}`), []byte(`{"spec":{"readinessProbe":{"tcpSocket":null}}}`))
	f.Fuzz(func(t *testing.T, data, stored []byte) {
		var sent modelv1.ModelBox
		if unmarshal(data, &sent) != nil {
			return
		}
		check(t, data, nil)
		var old modelv1.ModelBox
		if unmarshal(stored, &old) == nil {
			check(t, data, &old)
			setDefaults(&old, nil)
			check(t, data, &old)
		}
	})
}
