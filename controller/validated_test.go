// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// judged is an object as admission completes it, with its errors, the pods that it has validated, and the children that the
// controller builds.
type judged struct {
	object   client.Object
	errs     field.ErrorList
	pods     *workload.Pods
	children func() ([]kinds.Object, error)
}

// judges have the kinds with a pod template. They take the spec that a client sends.
var judges = map[string]func(namespace string, spec []byte) judged{
	"ModelBox": func(namespace string, spec []byte) judged {
		box := &modelv1.ModelBox{ObjectMeta: drawnMeta(namespace)}
		sent(spec, &box.Spec)
		modelbox.Default(box)
		return judged{box, modelbox.Validate(box), modelbox.Pods(box, models.Fetcher{}), modelbox.Workload(box, models.Fetcher{}).Children}
	},
	"App": func(namespace string, spec []byte) judged {
		obj := &appv1.App{ObjectMeta: drawnMeta(namespace)}
		sent(spec, &obj.Spec)
		app.Default(obj)
		return judged{obj, app.Validate(obj), app.Pods(obj), app.Workload(obj).Children}
	},
	"Genericdaemon": func(namespace string, spec []byte) judged {
		daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: drawnMeta(namespace)}
		sent(spec, &daemon.Spec)
		genericdaemon.Default(daemon)
		return judged{daemon, genericdaemon.Validate(daemon), genericdaemon.Pods(daemon), genericdaemon.Workload(daemon).Children}
	},
}

// drawnMeta is the metadata of a stored object, to which the children refer.
func drawnMeta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: drawnName, UID: "6a1e2c55-0000-4000-8000-000000000000"}
}

func sent(spec []byte, into any) {
	if err := json.Unmarshal(spec, into); err != nil {
		panic(string(spec) + ": " + err.Error())
	}
}

// judge returns the errors of a pod template, or the effective template that admission has validated, and that of the child.
func judge(kind string, template []byte) (errs field.ErrorList, validated, built corev1.PodTemplateSpec) {
	// A field that a kind does not have is ignored.
	j := judges[kind]("", fmt.Appendf(nil, `{"image":"a:1","label":"logs=yes","podTemplate":%s}`, template))
	if len(j.errs) > 0 {
		return j.errs, validated, built
	}
	validated, unbuildable := j.pods.Effective()
	children, err := j.children()
	switch {
	case err != nil || len(unbuildable) > 0:
		errs = field.ErrorList{field.InternalError(nil, fmt.Errorf("admitted, and not built: %w, %v", err, unbuildable))}
	case kind == "Genericdaemon":
		built = children[0].(*appsv1.DaemonSet).Spec.Template
	default:
		built = children[0].(*appsv1.Deployment).Spec.Template
	}
	return errs, validated, built
}

// treeOf returns a value as decoded JSON.
func treeOf(value any) (tree any) {
	data, err := json.Marshal(value)
	if err == nil {
		err = utiljson.Unmarshal(data, &tree)
	}
	if err != nil {
		panic(err)
	}
	return tree
}

// lost returns the path of a value that is in one tree and not in the other, "" if there is none. An item of a
// list may be anywhere in the other list, which may have more.
func lost(path string, want, have any) string {
	switch want := want.(type) {
	case nil:
		return ""
	case map[string]any:
		in, _ := have.(map[string]any)
		for key, value := range want {
			if found := lost(path+"."+key, value, in[key]); found != "" {
				return found
			}
		}
		return ""
	case []any:
		in, _ := have.([]any)
		for i, item := range want {
			at := fmt.Sprintf("%s[%d]", path, i)
			if !slices.ContainsFunc(in, func(other any) bool { return other != nil && lost(at, item, other) == "" }) {
				return at
			}
		}
		return ""
	}
	if !cmp.Equal(want, have) {
		return path
	}
	return ""
}

// withoutNulls removes nulls from objects.
func withoutNulls(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for key, value := range tree {
			if value == nil {
				delete(tree, key)
			}
			withoutNulls(value)
		}
	case []any:
		for _, item := range tree {
			withoutNulls(item)
		}
	}
}

// templates are pod templates whose nulls and directives once were read in another way by one of admission and the
// controller. The agreement specs compare their children with what the API server stores of them.
var templates = []string{
	`{"spec":{"nodeSelector":{"disk":null}}}`, `{"spec":{"nodeSelector":{"disk":"ssd","zone":null}}}`,
	`{"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":null,"team":"a"}}}]}}`,
	`{"spec":{"volumes":[{"name":"v","csi":{"driver":"d.example.com","volumeAttributes":{"$patch":"delete","keep":"me"}}}]}}`,
	`{"spec":{"volumes":[{"name":"v","csi":{"driver":"d.example.com","volumeAttributes":{"drop":null,"keep":"me"}}}]}}`,
	`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]},{"matchFields":null}]}}}}}`,
	`{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a b","operator":"Exists"}]}]}}}}}`,
	`{"metadata":{"labels":{"team":null,"a":"b"},"annotations":{"kubectl.kubernetes.io/restartedAt":"x","$patch":"replace"}}}`,
	`{"spec":{"containers":[{"name":"web","tty":true,"env":null},{"name":"side","image":"s:1","$patch":"delete"}]}}`,
	`{"spec":{"containers":[{"name":"side","image":"s:1","command":[null],"resources":{"limits":{"cpu":"0.5","memory":null}}}],"$retainKeys":["containers"]}}`,
	`{"spec":{"containers":[{"name":"side","image":"s:1","livenessProbe":{"tcpSocket":{"port":1},"exec":null}}],"tolerations":[{"operator":"Exists"}],"serviceAccountName":"s","serviceAccount":"t"}}`,
	`{"spec":{"securityContext":{"sysctls":[],"supplementalGroups":[1,2],"fsGroup":null},"hostAliases":[{"ip":"1.2.3.4","hostnames":["a"]}],"$setElementOrder/containers":[]}}`,
}

// FuzzWhatIsValidatedIsBuilt: of each kind, a template without errors is in the child, all of it, as it was
// validated; and nulls, which are not set, do not change it.
func FuzzWhatIsValidatedIsBuilt(f *testing.F) {
	for _, seed := range templates {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var tree map[string]any
		if utiljson.Unmarshal(text, &tree) != nil || tree == nil {
			t.Skip("nothing that an API server stores")
		}
		text, err := json.Marshal(tree)
		if err != nil {
			t.Skip("no JSON")
		}
		withoutNulls(tree)
		plain, err := json.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		for kind := range judges {
			errs, validated, built := judge(kind, text)
			if len(errs) > 0 {
				if errs[0].Type == field.ErrorTypeInternal {
					t.Errorf("%s %s: %v", kind, text, errs)
				}
				continue
			}
			if diff := cmp.Diff(validated, built); diff != "" {
				t.Errorf("%s %s (-validated +built):\n%s", kind, text, diff)
			}
			withoutErrs, _, without := judge(kind, plain)
			if diff := cmp.Diff(without, built); diff != "" || len(withoutErrs) > 0 {
				t.Errorf("%s %s (-without nulls +built): %v\n%s", kind, text, withoutErrs, diff)
			}
			written, _ := workload.Decode(&runtime.RawExtension{Raw: text})
			if written == nil {
				continue
			}
			// The operator's own: see Warnings.
			delete(written.Annotations, api.AnnotationRestartedAt)
			written.Spec.DeprecatedServiceAccount = ""
			if path := lost("podTemplate", treeOf(written), treeOf(built)); path != "" {
				t.Errorf("%s %s: %s is not in the child", kind, text, path)
			}
		}
	})
}
