// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

func server(name string) *Pods {
	target := intstr.FromInt32(8080)
	size := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")}
	return &Pods{
		AppName: "modelbox", Instance: "web",
		Container: corev1.Container{
			Name: name, Image: "server:1", Resources: corev1.ResourceRequirements{Limits: size, Requests: size},
			LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: target}}},
		},
		Ports:    []modelv1.Port{{Name: "a", Port: 80, TargetPort: &target}, {Name: "b", Port: 81, TargetPort: &target}, {Name: "c", Port: 82}},
		Reserved: reserved,
	}
}

// places returns the paths and types of errors, without the details, which are Kubernetes' own.
func places(errs field.ErrorList) string {
	lines := make([]string, 0, len(errs))
	for _, err := range errs {
		lines = append(lines, err.Field+": "+err.Type.String())
	}
	return strings.Join(lines, "\n")
}

const typical = `
metadata: {labels: {a: b}, annotations: {x: z}}
spec:
  serviceAccountName: models
  nodeSelector: {gpu: "true"}
  tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
  securityContext: {runAsNonRoot: true, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
  initContainers:
  - {name: fetch, image: "fetch:1", args: [a, b], volumeMounts: [{name: models, mountPath: /models}]}
  containers:
  - name: main
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: models, mountPath: /models, readOnly: true}]
  volumes: [{name: models, emptyDir: {sizeLimit: 10Gi}}]
`

func TestKubernetes(t *testing.T) {
	for name, tc := range map[string]struct {
		template, want string
		change         func(*Pods)
	}{
		"an empty template": {template: `{}`},
		"a typical one":     {template: typical},
		"metadata": {
			template: `{metadata: {labels: {"a b": c}, annotations: {"a b": c}}}`,
			want:     "spec.podTemplate.metadata.annotations: Invalid value\nspec.podTemplate.metadata.labels: Invalid value",
		},
		"pods that end": {
			template: `{spec: {restartPolicy: Never, activeDeadlineSeconds: 5}}`,
			want:     "spec.podTemplate.spec.activeDeadlineSeconds: Forbidden\nspec.podTemplate.spec.restartPolicy: Unsupported value",
		},
		"another container": {
			template: `{spec: {containers: [{name: a}, {name: main, volumeMounts: [{name: v, mountPath: /v}]}]}}`,
			want:     "spec.podTemplate.spec.containers[0].image: Required value\nspec.podTemplate.spec.containers[1].volumeMounts[0].name: Not found",
		},
		"the main container twice": {
			template: `{spec: {containers: [{name: main}, {name: main}]}}`,
			want:     "spec.podTemplate.spec.containers[1].name: Duplicate value",
		},
		"its name for an init container": {
			template: `{spec: {initContainers: [{name: main, image: a}]}}`,
			want:     "spec.podTemplate.spec.initContainers[0].name: Duplicate value",
		},
		"a privileged container":                     {template: `{spec: {containers: [{name: main, securityContext: {privileged: true}}]}}`},
		"a host process":                             {template: `{spec: {os: {name: windows}, hostNetwork: true, securityContext: {windowsOptions: {hostProcess: true}}}}`},
		"an empty list":                              {template: `{spec: {resources: {claims: [], limits: {cpu: "8"}}}}`},
		"the deprecated name of the service account": {template: `{spec: {serviceAccount: "A B"}}`},
		"pod-level limits below the object's resources": {
			template: `{spec: {resources: {limits: {cpu: 500m}}}}`,
			want:     "spec.resources.limits[cpu]: Invalid value",
		},
		"and below those of another container": {
			template: `{spec: {resources: {limits: {cpu: "1"}}, containers: [{name: a, image: a, resources: {limits: {cpu: "2"}}}]}}`,
			want:     "spec.podTemplate.spec.containers[0].resources.limits[cpu]: Invalid value",
		},
		"claims that the pod does not have": {
			template: `
spec:
  resourceClaims: [{name: c, resourceClaimName: c}]
  containers: [{name: a, image: a, resources: {claims: [{name: c}, {name: d}]}}]`,
			change: func(main *Pods) {
				main.Container.Resources.Claims = []corev1.ResourceClaim{{Name: "e"}}
			},
			want: "spec.podTemplate.spec.containers[0].resources.claims[1].name: Not found\nspec.resources.claims[0].name: Not found",
		},
		"a variable of a volume that is none": {
			template: `{spec: {volumes: [{name: v, emptyDir: {}}]}}`,
			change: func(main *Pods) {
				for _, volume := range []string{"v", "w"} {
					main.Container.Env = append(main.Container.Env, corev1.EnvVar{Name: volume, ValueFrom: &corev1.EnvVarSource{
						FileKeyRef: &corev1.FileKeySelector{VolumeName: volume, Path: "p", Key: "K"},
					}})
				}
			},
			want: "spec.envs[1].valueFrom.fileKeyRef.volumeName: Not found",
		},
		"a target port that is none": {
			template: `{spec: {containers: [{name: main}]}}`,
			change: func(main *Pods) {
				main.Ports[2].Port = 70000
			},
			want: "spec.ports[2].port: Invalid value",
		},
		"what the object's own fields define": {
			template: `
spec:
  containers: [{name: main, volumeMounts: [{name: v, mountPath: /v}]}, {name: a, image: a, volumeMounts: [{name: shared-memory, mountPath: /s}]}]
  volumes: [{name: v, emptyDir: {}}]`,
			change: setOwn,
		},
		"a mount at the path of one of them": {
			template: `{spec: {containers: [{name: main, volumeDevices: [{name: v, devicePath: /dev/shm}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}`,
			change:   setOwn,
			want:     "spec.podTemplate.spec.containers[0].volumeDevices[0].devicePath: Invalid value\nspec.sharedMemory: Invalid value",
		},
		"errors of the object's own fields": {
			template: `{spec: {containers: [{name: a, image: a}], volumes: [{name: v, emptyDir: {}}]}}`,
			change: func(main *Pods) {
				setOwn(main)
				main.Container.ImagePullPolicy = "always"
				main.SharedMemory = new(resource.MustParse("-1"))
			},
			want: "spec.imagePullPolicy: Unsupported value\nspec.sharedMemory: Not found\nspec.sharedMemory: Forbidden",
		},
		"errors of the same fields of the template": {
			template: `{spec: {containers: [{name: main, imagePullPolicy: always, envFrom: [{prefix: "="}]}], volumes: [{name: v, emptyDir: {sizeLimit: -1}}]}}`,
			want: "spec.podTemplate.spec.containers[0].envFrom: Invalid value\nspec.podTemplate.spec.containers[0].envFrom[0].prefix: Invalid value\n" +
				"spec.podTemplate.spec.containers[0].imagePullPolicy: Unsupported value\n" +
				"spec.podTemplate.spec.volumes[0].emptyDir.sizeLimit: Forbidden",
			change: func(main *Pods) {
				main.Reserved = []Reserved{{Field: "image", Instead: "spec.image"}, {Field: "imagePullPolicy", Instead: "spec.imagePullPolicy", Either: true},
					{Field: "envFrom", Instead: "spec.envFrom", Either: true}}
			},
		},
		"a hook that lasts longer than the pod's end": {
			template: `{spec: {containers: [{name: main, lifecycle: {preStop: {sleep: {seconds: 9}}}}]}}`,
			change:   func(main *Pods) { main.TerminationGracePeriodSeconds = new(int64(8)) },
			want:     "spec.podTemplate.spec.containers[0].lifecycle.preStop.sleep: Invalid value",
		},
		"a name that is not known yet": {
			template: `{spec: {containers: [{name: a, image: a}]}}`,
			change:   func(main *Pods) { main.Container.Name = "" },
		},
		"a name that is none": {template: `{}`, change: func(main *Pods) { main.Container.Name = "A" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			main := server("main")
			if tc.change != nil {
				tc.change(main)
			}
			before := *main.Container.DeepCopy()
			if got := places(validateWith(t, main, tc.template, nil)); got != tc.want {
				t.Errorf("errors:\n%s\nwant:\n%s", got, tc.want)
			}
			if diff := cmp.Diff(before, main.Container); diff != "" {
				t.Errorf("the main container was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// setOwn sets the fields that may be set in the object or in its pod template, and a volume.
func setOwn(main *Pods) {
	main.Reserved = append(slices.Clone(reserved), Reserved{Field: "imagePullPolicy", Instead: "spec.imagePullPolicy", Either: true},
		Reserved{Field: "command", Instead: "spec.command", Either: true}, Reserved{Field: "args", Instead: "spec.args", Either: true})
	c := &main.Container
	c.ImagePullPolicy, c.Command, c.Args = corev1.PullAlways, []string{"a"}, []string{"b"}
	main.SharedMemory = new(resource.MustParse("1Gi"))
}

// Each field has one error, not the same one twice.
func TestKnownErrors(t *testing.T) {
	for known, want := range map[string]string{
		"spec.image":               "spec.envs[0].name: Required value",
		"spec.envs":                "spec.image: Required value",
		"spec.envs[0].name":        "spec.image: Required value",
		"spec.envs[0].name.deeper": "spec.image: Required value",
		"spec.envs[01]":            "spec.envs[0].name: Required value\nspec.image: Required value",
	} {
		t.Run(known, func(t *testing.T) {
			t.Parallel()
			main := server("main")
			main.Container.Image, main.Container.Env = "", []corev1.EnvVar{{Value: "a"}}
			errs := validateWith(t, main, `{}`, field.ErrorList{{Field: known}})[1:]
			if got := places(errs); got != want {
				t.Errorf("errors:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A label that is set twice hides no error of another one, and so with annotations.
func TestEachLabelHasItsError(t *testing.T) {
	t.Parallel()
	main := server("main")
	main.Metadata = &modelv1.Metadata{Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"x": "y"}}
	errs := validateWith(t, main, `{metadata: {labels: {a: b, team: "a b"}, annotations: {x: z, "a b": c}}}`, nil)
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	const want = `spec.podTemplate.metadata.annotations: Invalid value
spec.podTemplate.metadata.annotations[x]: Forbidden
spec.podTemplate.metadata.labels: Invalid value
spec.podTemplate.metadata.labels[a]: Forbidden`
	if got := places(errs); got != want {
		t.Errorf("errors:\n%s\nwant:\n%s", got, want)
	}
}

func validateWith(t testing.TB, pods *Pods, template string, known field.ErrorList) field.ErrorList {
	t.Helper()
	pods.Template = raw(t, template)
	return pods.Validate(known)
}
