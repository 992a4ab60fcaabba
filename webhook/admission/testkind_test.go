// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Box is a kind that exists only here, of the shape and size of the real ones.
type Box struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`
	Spec              BoxSpec   `json:"spec,omitzero"`
	Status            BoxStatus `json:"status,omitzero"`
}

type BoxStatus struct {
	Phase string `json:"phase,omitempty"`
}

type BoxSpec struct {
	Image     string                       `json:"image,omitempty"`
	Replicas  *int32                       `json:"replicas,omitempty"`
	Size      string                       `json:"size,omitempty"`
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`
	Ports     []BoxPort                    `json:"ports,omitempty"`
	Envs      []corev1.EnvVar              `json:"envs,omitempty"`
	Probe     *corev1.Probe                `json:"probe,omitempty"`
	Liveness  *corev1.Probe                `json:"liveness,omitempty"`
	Rollout   BoxRollout                   `json:"rollout,omitzero"`
	Scratch   *string                      `json:"scratch,omitempty"`
}

type BoxPort struct {
	Name     string          `json:"name,omitempty"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol,omitempty"`
}

type BoxRollout struct {
	Surge *intstr.IntOrString `json:"surge,omitempty"`
}

func (b *Box) DeepCopyObject() runtime.Object {
	out := *b
	b.DeepCopyInto(&out.ObjectMeta)
	raw, err := json.Marshal(b.Spec)
	if err == nil {
		out.Spec = BoxSpec{}
		err = json.Unmarshal(raw, &out.Spec)
	}
	if err != nil {
		panic(err)
	}
	return &out
}

var boxGVK = schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Box"}

var boxKind = kinds.Kind[Box]{
	GVK: boxGVK, Default: defaultBox, Validate: validateBox, Warn: warnBox,
	Codec: func(_, _ *Box) kinds.Codec[Box] {
		return func(to, from *Box) {
			to.TypeMeta, to.ObjectMeta, to.Status = from.TypeMeta, from.ObjectMeta, from.Status
			to.Spec.Envs = from.Spec.Envs
		}
	},
	Update: &kinds.Update[Box]{Derived: boxDerived},
}

// boxDerived returns the resources of a size.
func boxDerived(sent, _ *Box) kinds.Fields {
	if boxSizes[sent.Spec.Size] == nil {
		return nil
	}
	return kinds.NewFields("resources.limits.*", "resources.requests.*")
}

var boxSizes = map[string]corev1.ResourceList{
	"small": {"cpu": resource.MustParse("1"), "memory": resource.MustParse("2Gi")},
	"large": {"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi")},
}

func defaultBox(obj *Box) {
	s := &obj.Spec
	if s.Image == "panic in Default" {
		panic(s.Image)
	}
	if s.Replicas == nil {
		s.Replicas = new(int32(1))
	}
	s.Size = cmp.Or(s.Size, "small")
	if want, known := boxSizes[s.Size]; known && s.Resources == nil {
		s.Resources = &corev1.ResourceRequirements{Limits: want, Requests: want}
	}
	for i := range s.Ports {
		if p := &s.Ports[i]; p.Name == "" && len(s.Ports) > 1 {
			p.Name = fmt.Sprintf("port-%d", p.Port)
		}
		s.Ports[i].Protocol = cmp.Or(s.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	if s.Rollout.Surge == nil {
		s.Rollout.Surge = new(intstr.FromString("25%"))
	}
	if s.Probe == nil && len(s.Ports) > 0 {
		s.Probe = boxProbe(s.Ports[0])
	}
	s.Scratch = nil
}

func boxProbe(p BoxPort) *corev1.Probe {
	return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(p.Port)}}}
}

func validateBox(obj *Box) field.ErrorList {
	var errs field.ErrorList
	s, spec := &obj.Spec, field.NewPath("spec")
	switch s.Image {
	case "panic in Validate":
		panic(s.Image)
	case "":
		errs = append(errs, field.Required(spec.Child("image"), "say what to run"))
	}
	if *s.Replicas < 0 {
		errs = append(errs, field.Invalid(spec.Child("replicas"), *s.Replicas, "must be 0 or more"))
	}
	if want, known := boxSizes[s.Size]; known && !equality.Semantic.DeepEqual(s.Resources.Limits, want) {
		errs = append(errs, field.Invalid(spec.Child("resources", "limits"), s.Resources.Limits, "is not what size "+s.Size+" has"))
	}
	for i, p := range s.Ports {
		if p.Port < 1 || p.Port > 65535 {
			errs = append(errs, field.Invalid(spec.Child("ports").Index(i).Child("port"), p.Port, "must be 1 to 65535"))
		}
	}
	return errs
}

func warnBox(obj, _ *Box, _ time.Time) []string {
	switch {
	case obj.Spec.Image == "panic in Warn":
		panic(obj.Spec.Image)
	case strings.HasSuffix(obj.Spec.Image, ":latest"):
		return []string{`spec.image: what ":latest" runs changes without notice`}
	}
	return nil
}

// typical returns a box as a user writes one, of 1.6 kB, which lacks many defaults.
func typical() *Box {
	b := &Box{
		TypeMeta: metav1.TypeMeta{APIVersion: "test.example.com/v1", Kind: "Box"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "typical", Namespace: "default", UID: "5b1d6f0e-6f4b-4a7e-9d0a-0c1d2e3f4a5b",
			Labels:      map[string]string{"app.kubernetes.io/name": "typical", "team": "serving"},
			Annotations: map[string]string{"example.com/owner": "someone@example.com"},
		},
		Spec: BoxSpec{
			Image: "registry.example.com/team/server:1.2",
			Ports: []BoxPort{{Port: 8080}, {Name: "grpc", Port: 9000}},
			Liveness: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
				PeriodSeconds: 10, FailureThreshold: 3,
			},
		},
	}
	for _, name := range []string{"MODEL_NAME", "MODEL_PATH", "LOG_LEVEL", "MAX_BATCH", "ENDPOINT"} {
		b.Spec.Envs = append(b.Spec.Envs, corev1.EnvVar{Name: name, Value: strings.Repeat(strings.ToLower(name), 2)})
	}
	b.Spec.Envs = append(b.Spec.Envs, corev1.EnvVar{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"},
	}})
	b.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: "kubectl-client-side-apply", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "test.example.com/v1",
		Time: new(metav1.Unix(1700000000, 0)), FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{".":{},"f:example.com/owner":{}},"f:labels":{".":{},` +
			`"f:app.kubernetes.io/name":{},"f:team":{}}},"f:spec":{".":{},"f:envs":{},"f:image":{},"f:liveness":{".":{},"f:failureThreshold":{},` +
			`"f:httpGet":{".":{},"f:path":{},"f:port":{}},"f:periodSeconds":{}},"f:ports":{}}}`),
	}}
	return b
}

// complete returns a box that has all defaults.
func complete() *Box {
	b := typical()
	defaultBox(b)
	return b
}

func with(b *Box, change func(*Box)) *Box {
	change(b)
	return b
}

func marshal(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// reviewOf is a review as the API server sends it.
func reviewOf(operation string, obj, old *Box) string {
	dryRun := false
	r := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:             "705ab4f5-6393-11e8-b7cc-42010a800002",
			Kind:            metav1.GroupVersionKind(boxGVK),
			Resource:        metav1.GroupVersionResource{Group: boxGVK.Group, Version: boxGVK.Version, Resource: "boxes"},
			RequestKind:     new(metav1.GroupVersionKind(boxGVK)),
			RequestResource: &metav1.GroupVersionResource{Group: boxGVK.Group, Version: boxGVK.Version, Resource: "boxes"},
			Operation:       admissionv1.Operation(operation),
			Namespace:       "default",
			DryRun:          &dryRun,
			Options:         runtime.RawExtension{Raw: []byte(`{"kind":"CreateOptions","apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-client-side-apply","fieldValidation":"Strict"}`)},
		},
	}
	r.Request.UserInfo.Username = "kubernetes-admin"
	r.Request.UserInfo.Groups = []string{"kubeadm:cluster-admins", "system:authenticated"}
	if obj != nil {
		r.Request.Name = obj.Name
		r.Request.Object.Raw = []byte(marshal(obj))
	}
	if old != nil {
		r.Request.OldObject.Raw = []byte(marshal(old))
	}
	return marshal(r)
}
