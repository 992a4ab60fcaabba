// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// mostShared bounds how many different lists are kept; a cluster has a handful of
// sizes, and those of the presets are three.
const mostShared = 64

// lists are the resource lists that cached objects share. A list is a map, the
// largest thing in most of these objects, and nearly all of them have the same few.
// What a cache holds is never changed, and who reads it gets a copy, so sharing is
// safe.
type lists struct {
	mu    sync.RWMutex
	known []corev1.ResourceList
}

var shared lists

// share is a list that is equal to one that is known, that one, and else list.
func (l *lists) share(list corev1.ResourceList) corev1.ResourceList {
	if len(list) == 0 {
		return list
	}
	if known := l.find(list); known != nil {
		return known
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) < mostShared {
		l.known = append(l.known, list)
	}
	return list
}

func (l *lists) find(list corev1.ResourceList) corev1.ResourceList {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, known := range l.known {
		if identical(known, list) {
			return known
		}
	}
	return nil
}

// identical says whether two lists are the same to the letter: 1 and 1000m are not.
func identical(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity != other {
			return false
		}
	}
	return true
}

// shareResources makes an object share its resource lists.
func shareResources(obj client.Object) {
	switch obj := obj.(type) {
	case *modelv1.ModelBox:
		shareRequirements(obj.Spec.Resources)
	case *appv1.App:
		shareRequirements(obj.Spec.Resources)
	case *mydomainv1beta1.Genericdaemon:
		shareRequirements(obj.Spec.Resources)
	case *appsv1.Deployment:
		shareContainers(&obj.Spec.Template.Spec)
	case *appsv1.DaemonSet:
		shareContainers(&obj.Spec.Template.Spec)
	}
}

func shareContainers(pod *corev1.PodSpec) {
	for i := range pod.Containers {
		shareRequirements(&pod.Containers[i].Resources)
	}
	for i := range pod.InitContainers {
		shareRequirements(&pod.InitContainers[i].Resources)
	}
}

func shareRequirements(r *corev1.ResourceRequirements) {
	if r != nil {
		r.Limits, r.Requests = shared.share(r.Limits), shared.share(r.Requests)
	}
}
