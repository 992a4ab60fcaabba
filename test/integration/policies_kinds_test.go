// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// spec is the spec of an object.
type spec map[string]any

// kind is what the tests need of one of the five kinds.
type kind struct {
	name     string
	resource schema.GroupVersionResource
	// spec is a valid spec, and changed another value of one of its fields.
	spec, changed spec
	// scale is whether the kind has the subresource scale.
	scale bool
}

var (
	modelBox = kind{
		"ModelBox", schema.GroupVersionResource{Group: "model.github.com", Version: "v1", Resource: "modelboxes"},
		spec{"image": "nginx:1", "ports": []any{map[string]any{"port": int64(80)}}}, spec{"image": "nginx:2"}, true,
	}
	app = kind{
		"App", schema.GroupVersionResource{Group: "app.huolala.cn", Version: "v1", Resource: "apps"},
		spec{"image": "nginx:1", "ports": []any{map[string]any{"port": int64(80)}}}, spec{"image": "nginx:2"}, true,
	}
	genericdaemon = kind{
		"Genericdaemon", schema.GroupVersionResource{Group: "mydomain.com", Version: "v1beta1", Resource: "genericdaemons"},
		spec{"image": "syslog:1", "label": "logs"}, spec{"image": "syslog:2"}, false,
	}
	unitedDeployment = kind{
		"UnitedDeployment", schema.GroupVersionResource{Group: "extension.k8s.io", Version: "v1", Resource: "uniteddeployments"},
		spec{"deploymentName": "web", "replicas": int64(2)}, spec{"replicas": int64(0)}, true,
	}
	eru = kind{
		"Eru", schema.GroupVersionResource{Group: "mtsre.meitu.com", Version: "v1", Resource: "erus"},
		spec{"deploymentName": "web"}, spec{"enabled": true}, false,
	}
	kinds = []kind{modelBox, app, genericdaemon, unitedDeployment, eru}
)

func (k kind) in(c dynamic.Interface, namespace string) dynamic.ResourceInterface {
	return c.Resource(k.resource).Namespace(namespace)
}

func (k kind) object(name string, s spec) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": runtime.DeepCopyJSON(s)}}
	obj.SetGroupVersionKind(k.resource.GroupVersion().WithKind(k.name))
	obj.SetName(name)
	return obj
}

var dryRun = []string{metav1.DryRunAll}

// outcome is the result of a request.
type outcome string

const (
	allowed     outcome = "allowed"
	byRBAC      outcome = "refused by RBAC"
	byRequester outcome = "refused by modelbox-requester"
	byDelegated outcome = "refused by modelbox-delegated"
)

// outcomeOf returns the outcome of a request. An error of another type is an outcome that
// no test expects.
func outcomeOf(err error) outcome {
	if err == nil {
		return allowed
	}
	if !apierrors.IsForbidden(err) {
		return outcome(fmt.Sprintf("failed: %v", err))
	}
	for _, policy := range []string{"modelbox-requester", "modelbox-delegated"} {
		if strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+policy+"' with binding '"+policy+"' denied request: ") {
			return outcome("refused by " + policy)
		}
	}
	return byRBAC
}
