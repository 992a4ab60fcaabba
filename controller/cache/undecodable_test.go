// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
)

// stored returns a ModelBox as an API server sends it.
func stored(name, metadata, spec, status string) string {
	return fmt.Sprintf(`{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":%q,"namespace":"default","uid":"u","resourceVersion":"7",`+
		`"generation":3%s},"spec":%s,"status":%s}`, name, metadata, spec, status)
}

const (
	goodSpec   = `{"image":"server:1","replicas":2}`
	goodStatus = `{"readyReplicas":2,"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`
)

func limit(quantity string) string {
	return `{"image":"server:1","resources":{"limits":{"cpu":` + quantity + `}}}`
}

func since(instant string) string {
	return strings.Replace(goodStatus, "2026-01-02T03:04:05Z", instant, 1)
}

// TestUndecodablePartsAreEmpty has values that earlier schemas accepted.
func TestUndecodablePartsAreEmpty(t *testing.T) {
	scheme := newScheme(t)
	for name, test := range map[string]struct {
		metadata, spec, status string
		// field is the beginning of the message, "" if the object is decoded completely.
		field                 string
		statusFails           bool
		keepsSpec, keepStatus bool
	}{
		"nothing":                                    {"", goodSpec, goodStatus, "", false, true, true},
		"an exponent with a point":                   {"", limit(`"1e.5"`), goodStatus, "spec.resources.limits.cpu: ", false, false, true},
		"an exponent with a fraction":                {"", limit(`"1e1.5"`), goodStatus, "spec.resources.limits.cpu: ", false, false, true},
		"an exponent that overflows":                 {"", limit(`"1e99999999999999999999"`), goodStatus, "spec.resources.limits[cpu]: ", false, false, true},
		"a huge exponent":                            {"", limit(`"1e999999999"`), goodStatus, "spec.resources.limits[cpu]: ", false, false, true},
		"a huge negative exponent":                   {"", limit(`"1e-999999999"`), goodStatus, "spec.resources.limits[cpu]: ", false, false, true},
		"many digits":                                {"", limit(`"` + strings.Repeat("9", 1<<20) + `"`), goodStatus, "spec.resources.limits[cpu]: ", false, false, true},
		"a port":                                     {"", `{"image":"a","readinessProbe":{"tcpSocket":{"port":3000000000}}}`, goodStatus, "spec.readinessProbe.tcpSocket.port: ", false, false, true},
		"an int32":                                   {"", `{"image":"a","replicas":3000000000}`, goodStatus, "spec.replicas: ", false, false, true},
		"an int64":                                   {"", goodSpec, `{"observedGeneration":1e19}`, "status.observedGeneration: ", true, true, false},
		"a wrong type":                               {"", `{"image":{}}`, goodStatus, "spec.image: ", false, false, true},
		"a spec that is a string":                    {"", `"x"`, goodStatus, "spec: ", false, false, true},
		"a time of the year 10000":                   {"", goodSpec, since("9999-12-31T23:59:59-01:00"), "status.conditions[0].lastTransitionTime: ", true, true, false},
		"a time before the year 0":                   {"", goodSpec, since("0000-01-01T00:00:00+01:00"), "status.conditions[0].lastTransitionTime: ", true, true, false},
		"a word as a time":                           {"", goodSpec, since("yesterday"), "status.conditions[0].lastTransitionTime: ", true, true, false},
		"a spec and a status":                        {"", limit(`"1e.5"`), since("x"), "spec.resources.limits.cpu: ", true, false, false},
		"a time in managedFields":                    {`,"managedFields":[{"manager":"a","time":"10000-01-01T00:00:00Z"}]`, goodSpec, goodStatus, "", false, true, true},
		"managedFields that are a string":            {`,"managedFields":"x"`, goodSpec, goodStatus, "", false, true, true},
		"a time of creation":                         {`,"creationTimestamp":"x"`, goodSpec, goodStatus, "metadata.creationTimestamp: ", false, true, true},
		"a time of deletion":                         {`,"deletionTimestamp":"10000-01-01T00:00:00Z"`, goodSpec, goodStatus, "metadata.deletionTimestamp: ", false, true, true},
		"labels":                                     {`,"labels":{"a":1}`, goodSpec, goodStatus, "metadata.labels.a: ", false, true, true},
		"a member twice":                             {"", `{"image":"a","image":"server:1"}`, goodStatus, "", false, true, true},
		"text that is not UTF-8":                     {"", "{\"image\":\"server:1\",\"name\":\"\xff\"}", goodStatus, "", false, true, true},
		"stored annotations that look like an error": {`,"annotations":{"` + annotationError + `":"x","` + annotationStatus + `":"true"}`, goodSpec, goodStatus, "", false, true, true},
		"the same, and an error":                     {`,"annotations":{"` + annotationStatus + `":"true","a":"b"}`, limit(`"1e.5"`), goodStatus, "spec.resources.limits.cpu: ", false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := stored("box", test.metadata, test.spec, test.status)
			_, read, err := decodeStream(t, newSerializer(scheme, kind), []byte(event("ADDED", text)))
			if err != nil || len(read) != 1 {
				t.Fatalf("read %d objects: %v", len(read), err)
			}
			box := read[0].(*modelv1.ModelBox)
			if box.Name != "box" || box.Namespace != "default" || box.UID != "u" || box.ResourceVersion != "7" || box.Generation != 3 {
				t.Errorf("metadata is %+v", box.ObjectMeta)
			}
			if kept := box.Spec.Image == "server:1"; kept != test.keepsSpec {
				t.Errorf("spec is %+v", box.Spec)
			}
			if kept := len(box.Status.Conditions) == 1; kept != test.keepStatus {
				t.Errorf("status is %+v", box.Status)
			}
			failure := DecodeErrorOf(box)
			if test.field == "" {
				if failure != nil {
					t.Errorf("an object that was decoded completely has the error %+v", failure)
				}
				return
			}
			if failure == nil || !strings.HasPrefix(failure.Message, test.field) || failure.Status != test.statusFails || len(failure.Message) > 2100 {
				t.Errorf("the error is %+v, want one of %s", failure, test.field)
			}
		})
	}
}

// TestListsKeepOtherObjects has a server that responds to lists.
func TestListsKeepOtherObjects(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	var status int
	var response string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/apis/model.github.com/v1/modelboxes" || r.URL.Query().Get("limit") != "5" {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, response)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(kind, kind.GroupVersion().WithResource("modelboxes"), kind.GroupVersion().WithResource("modelbox"), meta.RESTScopeNamespace)
	lw := listerWatcher{config: configFor(&rest.Config{Host: server.URL}, scheme, kind), client: server.Client(), mapper: mapper, kind: kind,
		parameters: runtime.NewParameterCodec(scheme), listType: listTypeOf(scheme, kind)}
	list := func() (*modelv1.ModelBoxList, error) {
		obj, err := lw.List(t.Context(), metav1.ListOptions{Limit: 5})
		if err != nil {
			return nil, err
		}
		return obj.(*modelv1.ModelBoxList), nil
	}

	status, response = http.StatusOK, `{"apiVersion":"model.github.com/v1","kind":"ModelBoxList","metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":4},"items":[`+
		stored("good", "", goodSpec, goodStatus)+","+stored("bad", "", limit(`"1e.5"`), goodStatus)+","+stored("other", "", goodSpec, "{}")+"]}"
	got, err := list()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range got.Items {
		names = append(names, fmt.Sprint(got.Items[i].Name, " ", got.Items[i].Spec.Image, " ", DecodeErrorOf(&got.Items[i]) != nil))
	}
	if diff := cmp.Diff([]string{"good server:1 false", "bad  true", "other server:1 false"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.ResourceVersion != "9" || got.Continue != "c" || *got.RemainingItemCount != 4 {
		t.Errorf("the list's own metadata is %+v", got.ListMeta)
	}

	status, response = http.StatusGone, `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}`
	if _, err = list(); !apierrors.IsResourceExpired(err) {
		t.Errorf("the error for a version that is too old is %v", err)
	}
	status, response = http.StatusTooManyRequests, `slow down`
	if _, err = list(); !apierrors.IsTooManyRequests(err) {
		t.Errorf("the error for a response without a Status is %v", err)
	}
	status = http.StatusOK
	for _, response = range []string{`{`, ``} {
		if _, err = list(); err == nil {
			t.Errorf("%q was decoded as a list", response)
		}
	}
}

// TestMetricOfUndecodableObjects counts the objects in an informer's store.
func TestMetricOfUndecodableObjects(t *testing.T) {
	t.Parallel()
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, toolscache.Indexers{undecodableIndex: indexUndecodable})
	var counted reporter
	counted.indexers.Store(informerKey{kind: "Eru"}, store)
	expect := func(n int) {
		t.Helper()
		registry := prometheus.NewRegistry()
		registry.MustRegister(&counted)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
			t.Fatalf("gathered %v: %v", families, err)
		}
		if got := families[0].GetMetric()[0]; got.GetGauge().GetValue() != float64(n) || got.GetLabel()[0].GetValue() != "Eru" {
			t.Errorf("the metric is %v, want %d", got, n)
		}
	}
	expect(0)
	good, bad := &mtsrev1.Eru{}, &mtsrev1.Eru{}
	good.Name, bad.Name = "good", "bad"
	(&DecodeError{Message: "x"}).annotate(bad)
	if store.Add(good) != nil || store.Add(bad) != nil {
		t.Fatal("the store does not accept the objects")
	}
	expect(1)
	decodable := &mtsrev1.Eru{}
	decodable.Name = "bad"
	if err := store.Update(decodable); err != nil {
		t.Fatal(err)
	}
	expect(0)
}

func TestAnnotateKeepsOtherAnnotations(t *testing.T) {
	t.Parallel()
	shared := map[string]string{"a": "b", annotationError: "old"}
	obj := &modelv1.ModelBox{ObjectMeta: metav1.ObjectMeta{Annotations: shared}}
	(&DecodeError{Message: "new", Status: true}).annotate(obj)
	if got := DecodeErrorOf(obj); got.Message != "new" || !got.Status || obj.Annotations["a"] != "b" || shared[annotationError] != "old" {
		t.Errorf("the error is %+v, and the map that the object had before is %v", got, shared)
	}
	removeDecodeError(obj)
	if diff := cmp.Diff(map[string]string{"a": "b"}, obj.Annotations); diff != "" {
		t.Error(diff)
	}
}
