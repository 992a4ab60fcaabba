// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// spec is the spec of an object.
type spec map[string]any

// kind is what the tests need of one of the five kinds: a valid spec, another value of one of its
// fields, and whether it has the subresource scale.
type kind struct {
	name          string
	resource      schema.GroupVersionResource
	spec, changed spec
	scale         bool
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
	// podKinds are the kinds whose objects make pods.
	podKinds = kinds[:3]
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

func find(t *testing.T, name string) kind {
	t.Helper()
	for _, k := range kinds {
		if k.name == name {
			return k
		}
	}
	t.Fatalf("there is no kind %s", name)
	return kind{}
}

// decoded decodes YAML as a client does: integers become int64.
func decoded(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
