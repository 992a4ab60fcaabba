// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package rollout reads the revisions of a Deployment, and computes how the object that
// controls it returns to one of them.
package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
)

// The annotations of a ReplicaSet that the Deployment controller and kubectl write.
const (
	annotationRevision    = "deployment.kubernetes.io/revision"
	annotationChangeCause = "kubernetes.io/change-cause"
)

// Revision is a revision of a Deployment: one of its ReplicaSets.
type Revision struct {
	Number  int64       `json:"revision"`
	Created metav1.Time `json:"created"`
	Image   string      `json:"image"`
	// Model is the URI of spec.model, and Digest what is known of its bytes: sha256: and 64 digits.
	Model       string `json:"model,omitempty"`
	Digest      string `json:"digest,omitempty"`
	Replicas    int32  `json:"replicas"`
	ChangeCause string `json:"changeCause,omitempty"`
	// Current is that the Deployment rolls out, or has rolled out, this revision.
	Current bool `json:"current,omitempty"`

	Template corev1.PodTemplateSpec `json:"-"`
}

// Revisions returns the revisions that the ReplicaSets of a Deployment have, the oldest first.
// container is the name of the main container.
func Revisions(deployment *appsv1.Deployment, sets []appsv1.ReplicaSet, container string) []Revision {
	var out []Revision
	for i := range sets {
		set := &sets[i]
		number, err := strconv.ParseInt(set.Annotations[annotationRevision], 10, 64)
		if err != nil || !metav1.IsControlledBy(set, deployment) {
			continue
		}
		revision := Revision{
			Number: number, Created: set.CreationTimestamp, Replicas: ptr.Deref(set.Spec.Replicas, 0),
			ChangeCause: set.Annotations[annotationChangeCause], Image: containerOf(&set.Spec.Template, container).Image, Template: set.Spec.Template,
		}
		revision.Model, revision.Digest = modelOf(&set.Spec.Template.Spec)
		out = append(out, revision)
	}
	slices.SortFunc(out, func(a, b Revision) int { return cmp.Compare(a.Number, b.Number) })
	if len(out) > 0 {
		out[len(out)-1].Current = true // The one that is rolled out gets the highest number.
	}
	return out
}

// modelOf returns the URI of spec.model in pods, and the digest that it was verified by, "" for what they do not say. What
// a termination message said is known for the current revision alone: a ReplicaSet has no place for it that is the operator's.
func modelOf(pod *corev1.PodSpec) (uri, digest string) {
	for i := range pod.Volumes {
		if v := &pod.Volumes[i]; v.Name == modelsource.Volume && v.Image != nil {
			_, digest, _ = strings.Cut(v.Image.Reference, "@")
			return modelsource.Image + "://" + v.Image.Reference, digest
		}
	}
	for i := range pod.InitContainers {
		if c := &pod.InitContainers[i]; modelsource.IsFetcher(c) {
			return modelsource.Fetched(c)
		}
	}
	return "", ""
}

// Find returns the revision of a number, or for 0 the one before the current one.
func Find(revisions []Revision, number int64) (*Revision, error) {
	if number == 0 {
		if len(revisions) < 2 {
			return nil, fmt.Errorf("there is no revision before the current one: Kubernetes keeps those of spec.revisionHistoryLimit")
		}
		return &revisions[len(revisions)-2], nil
	}
	for i := range revisions {
		if revisions[i].Number == number {
			return &revisions[i], nil
		}
	}
	return nil, fmt.Errorf("there is no revision %d; see the command history", number)
}

// containerOf returns a container of a pod template, an empty one if there is none of its name.
func containerOf(template *corev1.PodTemplateSpec, name string) *corev1.Container {
	for i := range template.Spec.Containers {
		if template.Spec.Containers[i].Name == name {
			return &template.Spec.Containers[i]
		}
	}
	return &corev1.Container{}
}
