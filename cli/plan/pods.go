// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/v1/resource"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/render"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
)

// Restart is that pods are replaced, because their template changes.
type Restart struct {
	// Pods is their number, of which AtATime are replaced at a time.
	Pods    int32 `json:"pods"`
	AtATime int32 `json:"atATime"`
	// Fields are the fields of the object whose changes are the cause.
	Fields []string `json:"fields,omitempty"`
	// SparePods is how many more pods there are during the rollout, and SpareDevices what devices
	// these request together.
	SparePods    int32            `json:"sparePods"`
	SpareDevices map[string]int64 `json:"spareDevices,omitempty"`
}

// Scale is that the number of pods changes. NewDevices are those that the additional pods request.
type Scale struct {
	From       int32            `json:"from"`
	To         int32            `json:"to"`
	NewDevices map[string]int64 `json:"newDevices,omitempty"`
}

// pods sets what happens to the pods of a child, if it has any.
func (o *Object) pods(c child, sizes modelbox.Sizes) {
	switch after := c.after.(type) {
	case *appsv1.Deployment:
		before, _ := c.before.(*appsv1.Deployment)
		before = cmp.Or(before, &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}})
		from, to := *before.Spec.Replicas, *after.Spec.Replicas
		if from != to {
			o.Scale = &Scale{From: from, To: to, NewDevices: devices(&after.Spec.Template, max(to-from, 0))}
		}
		if c.before != nil && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
			if after.Spec.Paused {
				o.Notes = append(o.Notes, "the Deployment is paused: no pod restarts before kubectl rollout resume")
			}
			surge, unavailable := deploymentutil.MaxSurge(*after), deploymentutil.MaxUnavailable(*after)
			if !deploymentutil.IsRollingUpdate(after) {
				unavailable = to
			}
			o.restart(sizes, &after.Spec.Template, min(from, to), surge, surge+unavailable)
		}
	case *appsv1.DaemonSet:
		before, _ := c.before.(*appsv1.DaemonSet)
		if before != nil && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template) {
			nodes := after.Status.DesiredNumberScheduled
			unavailable, _ := daemonutil.UnavailableCount(after, int(nodes))             // Validation refuses what is no number.
			o.restart(sizes, &after.Spec.Template, nodes, 0, max(int32(unavailable), 1)) //nolint:gosec // It is at most as large as the field, or the nodes.
		}
	}
}

func (o *Object) restart(sizes modelbox.Sizes, template *corev1.PodTemplateSpec, pods, surge, atATime int32) {
	surge = min(surge, pods)
	o.Restart = &Restart{
		Pods: pods, AtATime: min(atATime, pods), Fields: o.causes(sizes), SparePods: surge, SpareDevices: devices(template, surge),
	}
}

// causes returns the fields of the object whose changes change the pod template: each of them does
// so alone, with the defaults that follow it. If none of them does, all changes together are the
// cause; it is nil if the object does not change. A list is one field.
func (o *Object) causes(sizes modelbox.Sizes) []string {
	var all, out []string
	before := o.template(o.before, sizes)
	for _, names := range changed([]string{"spec"}, o.before.Object["spec"], o.patched.Object["spec"]) {
		all = append(all, pathOf(names))
		variant := o.patched.DeepCopy()
		variant.Object["spec"] = o.before.DeepCopy().Object["spec"]
		if value, found, _ := unstructured.NestedFieldCopy(o.patched.Object, names...); found {
			_ = unstructured.SetNestedField(variant.Object, value, names...) // It is in an object.
		} else {
			unstructured.RemoveNestedField(variant.Object, names...)
		}
		if after := o.template(variant, sizes); after != nil && !equality.Semantic.DeepEqual(before, after) {
			out = append(out, all[len(all)-1])
		}
	}
	if len(out) > 0 {
		return out
	}
	return all
}

// template returns the pod template of an update of the stored object, nil if none can be made of
// it.
func (o *Object) template(updated *unstructured.Unstructured, sizes modelbox.Sizes) *corev1.PodTemplateSpec {
	obj, err := create.Defaulted(o.kind, updated, o.before, sizes)
	if err != nil {
		return nil
	}
	children, err := o.kind.Children(obj, o.fetcher)
	if err != nil {
		return nil
	}
	render.SetDefaults(children[0])
	return render.TemplateOf(children[0])
}

// changed returns the names of the fields that differ in two values, from the outermost to the
// innermost that is an object in both.
func changed(names []string, from, to any) (out [][]string) {
	if reflect.DeepEqual(from, to) {
		return nil
	}
	before, isObject := from.(map[string]any)
	after, areObjects := to.(map[string]any)
	if !isObject || !areObjects {
		return [][]string{names}
	}
	for _, key := range sets.List(sets.KeySet(before).Union(sets.KeySet(after))) {
		was, had := before[key]
		is, has := after[key]
		if at := append(slices.Clone(names), key); had && has {
			out = append(out, changed(at, was, is)...)
		} else {
			out = append(out, at)
		}
	}
	return out
}

func pathOf(names []string) string {
	path := field.NewPath(names[0])
	for _, name := range names[1:] {
		if strings.ContainsAny(name, "./") {
			path = path.Key(name)
		} else {
			path = path.Child(name)
		}
	}
	return path.String()
}

// devices returns the accelerators that some pods request: resources with a slash in their name.
func devices(template *corev1.PodTemplateSpec, pods int32) map[string]int64 {
	pod, out := &corev1.Pod{Spec: *template.Spec.DeepCopy()}, map[string]int64{}
	corev1defaults.SetObjectDefaults_Pod(pod) // What has a limit only is requested.
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for name := range list[i].Resources.Requests {
				if n := resource.GetResourceRequest(pod, name) * int64(pods); n > 0 && strings.Contains(string(name), "/") {
					out[string(name)] = n
				}
			}
		}
	}
	return out
}
