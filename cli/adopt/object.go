// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adopt makes the object whose children equal a Deployment and a Service that run already,
// and gives these to it without a restart. What it decides is pure; adoption.go reads and writes.
package adopt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// The fields of the main container, and of the pod, that both kinds have, by their names in the
// object; and those that only a ModelBox has.
var (
	ofContainer = map[string]string{
		"image": "image", "imagePullPolicy": "imagePullPolicy", "command": "command", "args": "args",
		"env": "envs", "envFrom": "envFrom", "resources": "resources",
	}
	ofModelBox  = []string{"readinessProbe", "livenessProbe", "startupProbe"}
	pullSecrets = "imagePullSecrets"
	gracePeriod = "terminationGracePeriodSeconds"
)

// Object returns the object of a kind, App or ModelBox, that has as its children a Deployment and a
// Service, which may be nil. What has no field goes to spec.podTemplate, and defaults are left out.
// The error says why there is no such object, and what to do. What admission refuses of the object
// is for the caller.
func Object(kind *kinds.Kind, d *appsv1.Deployment, s *corev1.Service) (*unstructured.Unstructured, error) {
	isBox := kind == kinds.ModelBox()
	if err := errors.Join(adoptable(d), adoptableService(d, s, isBox)); err != nil {
		return nil, err
	}
	template, err := withoutDefaults(&d.Spec.Template)
	if err != nil {
		return nil, err
	}
	fields := ofDeployment(d, isBox)
	if main := mainContainer(d); main != d.Name {
		fields.Name = main
	}
	if s != nil {
		if err := ofService(s, fields, isBox); err != nil {
			return nil, err
		}
		if s.Name != d.Name {
			fields.Service = cmp.Or(fields.Service, &modelv1.ServiceOptions{})
			fields.Service.Name = s.Name
		}
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fields)
	if err != nil {
		return nil, err
	}
	spec["podTemplate"] = template
	moveFields(template, mainContainer(d), spec, isBox)
	obj := kind.Unstructured()
	obj.Object["spec"] = spec
	obj.SetNamespace(d.Namespace)
	obj.SetName(d.Name)
	return obj, nil
}

func adoptable(d *appsv1.Deployment) error {
	switch {
	case d.DeletionTimestamp != nil:
		return fmt.Errorf("deployment %q is being deleted", d.Name)
	case len(d.Spec.Template.Spec.Containers) == 0: // In a manifest: none is stored.
		return fmt.Errorf("deployment %q has no container", d.Name)
	case d.Spec.Selector == nil || len(d.Spec.Selector.MatchLabels) == 0 || len(d.Spec.Selector.MatchExpressions) > 0:
		return fmt.Errorf("the selector of Deployment %q (%s) is not only of labels, which a Service needs, and cannot be changed: "+
			"create an object of another name, and delete the Deployment when it is ready", d.Name, metav1.FormatLabelSelector(d.Spec.Selector))
	}
	return nil
}

func adoptableService(d *appsv1.Deployment, s *corev1.Service, isBox bool) error {
	const wayOut = "; adopt the Deployment alone: the Service stays as it is, and continues to select its pods"
	switch {
	case s == nil:
		return nil
	case s.DeletionTimestamp != nil:
		return fmt.Errorf("service %q is being deleted", s.Name)
	case !maps.Equal(s.Spec.Selector, d.Spec.Selector.MatchLabels):
		return fmt.Errorf("service %q selects %s, and Deployment %q %s: an object has one selector for both"+wayOut, s.Name,
			metav1.FormatLabelSelector(metav1.SetAsLabelSelector(s.Spec.Selector)), d.Name, metav1.FormatLabelSelector(d.Spec.Selector))
	case len(s.Spec.Ports) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName:
		return fmt.Errorf("service %q has no ports for the pods, and an object without ports has no Service"+wayOut, s.Name)
	case s.Spec.Type == corev1.ServiceTypeLoadBalancer && !isBox:
		return fmt.Errorf("service %q has the type LoadBalancer, for which an App has no field: use --kind ModelBox, or adopt the Deployment alone", s.Name)
	}
	return nil
}

// defaultContainer is the annotation of a pod that names the container which kubectl logs and exec
// choose.
const defaultContainer = "kubectl.kubernetes.io/default-container"

// mainContainer returns the name of the container that becomes the main one: the one that has the
// name of the object, or the one that kubectl chooses.
func mainContainer(d *appsv1.Deployment) string {
	template := &d.Spec.Template
	for _, name := range []string{d.Name, template.Annotations[defaultContainer]} {
		if slices.ContainsFunc(template.Spec.Containers, func(c corev1.Container) bool { return c.Name == name }) {
			return name
		}
	}
	return template.Spec.Containers[0].Name // A Deployment has one.
}

// moveFields moves what the object has fields for from a pod template to its spec. The main
// container stays in the template, for its place among the others, unless it is the only one and
// has nothing left.
func moveFields(template map[string]any, main string, spec map[string]any, isBox bool) {
	pod, _ := template["spec"].(map[string]any)
	move := func(from map[string]any, field, to string) {
		if value, ok := from[field]; ok {
			delete(from, field)
			spec[to] = value
		}
	}
	containers, _ := pod["containers"].([]any)
	for _, item := range containers {
		c := item.(map[string]any)
		if c["name"] != main {
			continue
		}
		for field, to := range ofContainer {
			move(c, field, to)
		}
		for _, field := range ofModelBox {
			if isBox {
				move(c, field, field)
			}
		}
		if len(containers) == 1 && len(c) == 1 {
			delete(pod, "containers")
		}
	}
	if move(pod, pullSecrets, pullSecrets); isBox {
		move(pod, gracePeriod, gracePeriod)
	}
	if len(pod) == 0 {
		delete(template, "spec")
	}
}

// ofDeployment returns what the object has fields for of the Deployment itself, for an App those
// that it has, too.
func ofDeployment(d *appsv1.Deployment, isBox bool) *modelv1.ModelBoxSpec {
	spec := &modelv1.ModelBoxSpec{Replicas: new(ptr.Deref(d.Spec.Replicas, 1)), Selector: map[string]modelv1.LabelValue{}}
	for key, value := range d.Spec.Selector.MatchLabels {
		spec.Selector[key] = modelv1.LabelValue(value)
	}
	if isBox {
		spec.ResourceType, spec.DefaultProbes, spec.Resources = modelv1.ResourceTypeCustom, modelv1.DefaultProbesDisabled, &corev1.ResourceRequirements{}
	}
	quarter := new(intstr.FromString("25%"))
	usual := appsv1.DeploymentStrategy{
		Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: quarter, MaxUnavailable: quarter},
	}
	if !equality.Semantic.DeepEqual(d.Spec.Strategy, usual) {
		spec.Strategy = &d.Spec.Strategy
	}
	ofRollout(d, spec, isBox)
	return spec
}

// ofRollout sets the numbers of a rollout that are no defaults of an App. Those that the object cannot have
// are left out.
func ofRollout(d *appsv1.Deployment, spec *modelv1.ModelBoxSpec, isBox bool) {
	const byDefault, revisions, most = 600, 10, 86400
	least := int32(1)
	if isBox {
		least = 4 // More than the default of its minReadySeconds.
	}
	deadline := ptr.Deref(d.Spec.ProgressDeadlineSeconds, byDefault)
	if (isBox || deadline != byDefault) && deadline >= least && deadline <= most {
		spec.ProgressDeadlineSeconds = &deadline
	}
	valid := func(of modelv1.Children) bool {
		return len(children.ValidateRollout(field.NewPath("spec"), &of, spec.ProgressDeadlineSeconds)) == 0
	}
	ready, limit := new(d.Spec.MinReadySeconds), new(ptr.Deref(d.Spec.RevisionHistoryLimit, revisions))
	if (isBox || *ready != 0) && valid(modelv1.Children{MinReadySeconds: ready}) {
		spec.MinReadySeconds = ready
	}
	if *limit != revisions && valid(modelv1.Children{RevisionHistoryLimit: limit}) {
		spec.RevisionHistoryLimit = limit
	}
}

// ofService sets the ports of a Service with the node ports that they have, its type, and further
// fields.
func ofService(s *corev1.Service, spec *modelv1.ModelBoxSpec, isBox bool) error {
	for _, p := range s.Spec.Ports {
		port := modelv1.Port{Name: p.Name, Port: p.Port, NodePort: p.NodePort, AppProtocol: p.AppProtocol}
		if p.Protocol != corev1.ProtocolTCP {
			port.Protocol = p.Protocol
		}
		if p.TargetPort != intstr.FromInt32(p.Port) {
			port.TargetPort = &p.TargetPort
		}
		spec.Ports = append(spec.Ports, port)
	}
	if isBox {
		spec.ServiceType = s.Spec.Type
	}
	options, err := optionsOf(s)
	spec.Service = options
	return err
}

// optionsOf returns the fields of a Service that spec.service has under the same names, nil if all of
// them are defaults. What is valid only with a field that the object does not have is left out.
func optionsOf(s *corev1.Service) (*modelv1.ServiceOptions, error) {
	convert := runtime.DefaultUnstructuredConverter
	spec, err := convert.ToUnstructured(&s.Spec)
	if err != nil {
		return nil, err
	}
	usual := withDefaults(&corev1.Service{Spec: corev1.ServiceSpec{Type: s.Spec.Type, Ports: s.Spec.Ports}}).(*corev1.Service)
	byDefault, err := convert.ToUnstructured(&usual.Spec)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(spec, func(name string, value any) bool {
		one := &modelv1.ServiceOptions{}
		err := convert.FromUnstructured(map[string]any{name: value}, one)
		return err != nil || reflect.ValueOf(*one).IsZero() || equality.Semantic.DeepEqual(value, byDefault[name]) ||
			len(children.ValidateService(field.NewPath("spec"), &modelv1.Children{Service: one}, s.Spec.Type)) > 0
	})
	if len(spec) == 0 {
		return nil, nil
	}
	options := &modelv1.ServiceOptions{}
	return options, convert.FromUnstructured(spec, options)
}

// withoutDefaults returns a live pod template as JSON, without what the API server, or the
// operator, sets where it is unset.
func withoutDefaults(live *corev1.PodTemplateSpec) (map[string]any, error) {
	live = live.DeepCopy()
	delete(live.Annotations, api.AnnotationRestartedAt) // It belongs to who restarts the pods.
	if live.Spec.DeprecatedServiceAccount == live.Spec.ServiceAccountName {
		live.Spec.DeprecatedServiceAccount = ""
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return nil, err
	}
	prune(tree, tree)
	return tree, nil
}

// prune removes from an object in a pod template, at any depth, what the template is the same
// without: the defaults of the API server. Those of an item of a list depend on nothing outside of
// it, so the template has nothing else meanwhile: otherwise a long list would take minutes.
func prune(template, object map[string]any) {
	lists := map[string][]any{}
	for field, member := range object {
		if items, ok := member.([]any); ok && len(items) > 0 && isObject(items[0]) {
			lists[field] = items
			delete(object, field)
		}
	}
	whole := defaults(template)
	for _, field := range slices.Sorted(maps.Keys(object)) {
		member := object[field]
		// A volume without a source is hard to read.
		if delete(object, field); field == "emptyDir" || !equality.Semantic.DeepEqual(defaults(template), whole) {
			if object[field] = member; isObject(member) {
				prune(template, member.(map[string]any))
			}
		}
	}
	rest := maps.Clone(object)
	for field, items := range lists {
		for _, item := range items {
			clear(object)
			object[field] = []any{item}
			prune(template, item.(map[string]any))
		}
		rest[field] = items
	}
	clear(object)
	maps.Copy(object, rest)
}

func isObject(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// defaults returns a pod template with the defaults of the API server, nil if it is none.
func defaults(template map[string]any) *corev1.PodTemplate {
	out := &corev1.PodTemplate{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(template, &out.Template); err != nil {
		return nil
	}
	corev1defaults.SetObjectDefaults_PodTemplate(out)
	return out
}
