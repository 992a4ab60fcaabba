// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// system is the namespace that the operator runs in.
const system = "modelbox-system"

// The names of the two processes, which are also the names of their objects.
const (
	webhookName    = "modelbox-webhook"
	controllerName = "modelbox-controller"
)

// largest is the size in bytes from which on "kubectl apply" cannot store an object in
// its annotation.
const largest = 262144

// object is a rendered object, as JSON and decoded.
type object struct {
	gvk  schema.GroupVersionKind
	meta metav1.Object
	json []byte
}

func (o object) String() string {
	return strings.TrimPrefix(fmt.Sprintf("%s %s/%s", o.gvk.Kind, o.meta.GetNamespace(), o.meta.GetName()), "/")
}

// foreign are the kinds whose types this project does not import.
var foreign = map[schema.GroupKind]func() metav1.Object{
	{Group: "cert-manager.io", Kind: "Certificate"}:          func() metav1.Object { return &unstructured.Unstructured{} },
	{Group: "cert-manager.io", Kind: "Issuer"}:               func() metav1.Object { return &unstructured.Unstructured{} },
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}: func() metav1.Object { return &serviceMonitor{} },
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}: func() metav1.Object { return &prometheusRule{} },
}

// install returns the objects that "kubectl apply -k config" applies.
func install(t *testing.T) []object { return render(t, ".") }

// monitoring returns the objects that "kubectl apply -k config/monitoring" applies.
func monitoring(t *testing.T) []object { return render(t, "monitoring") }

// render builds a folder with kustomize and decodes the objects strictly.
func render(t *testing.T, folder string) []object {
	t.Helper()
	return parse(t, kustomize(t, folder))
}

// parse decodes the objects in the output of kustomize strictly.
func parse(t *testing.T, text string) []object {
	t.Helper()
	var objects []object
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("reading the output of kustomize: %v", err)
		}
		objects = append(objects, decode(t, document))
	}
}

// rendered caches the output of kustomize by folder, or by the text of a kustomization. Each test decodes it again.
var rendered = map[string]string{}

func kustomize(t *testing.T, folder string) string {
	t.Helper()
	if text, ok := rendered[folder]; ok {
		return text
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run the tests with 'make test', or set it to the output of hack/binaries.sh")
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(t.Context(), filepath.Join(assets, "kubectl"), "kustomize", folder)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		t.Fatalf("kubectl kustomize %s: %v: %s", folder, err, &stderr)
	}
	rendered[folder] = stdout.String()
	return rendered[folder]
}

// decode decodes one document into the type of its kind. Unknown and duplicate fields
// are errors.
func decode(t *testing.T, document []byte) object {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		t.Fatalf("%v in\n%s", err, document)
	}
	var kind metav1.TypeMeta
	if err := json.Unmarshal(data, &kind); err != nil {
		t.Fatal(err)
	}
	o := object{gvk: kind.GroupVersionKind(), meta: typeOf(t, kind.GroupVersionKind()), json: data}
	strict, err := kjson.UnmarshalStrict(data, o.meta)
	if err := errors.Join(append(strict, err)...); err != nil {
		t.Errorf("%s: %v", o, err)
	}
	return o
}

// kubernetes is a scheme with Kubernetes' own kinds.
var kubernetes = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(apiextensionsv1.AddToScheme(scheme))
	return scheme
})

func typeOf(t *testing.T, gvk schema.GroupVersionKind) metav1.Object {
	t.Helper()
	if newObject, ok := foreign[gvk.GroupKind()]; ok {
		return newObject()
	}
	typed, err := kubernetes().New(gvk)
	if err != nil {
		t.Fatalf("the manifests have an object of a kind that this test does not know: %v", err)
	}
	return typed.(metav1.Object)
}

// each returns the objects of a type, such as *corev1.Service.
func each[T metav1.Object](objects []object) []T {
	var out []T
	for _, o := range objects {
		if typed, ok := o.meta.(T); ok {
			out = append(out, typed)
		}
	}
	return out
}

// find returns the object of a type and name. It fails the test if there is none.
func find[T metav1.Object](t *testing.T, objects []object, name string) T {
	t.Helper()
	all := each[T](objects)
	at := slices.IndexFunc(all, func(o T) bool { return o.GetName() == name })
	if at < 0 {
		t.Fatalf("there is no %T %q", *new(T), name)
	}
	return all[at]
}
