// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

var kind = modelv1.SchemeGroupVersion.WithKind("ModelBox")

func newScheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	return scheme
}

const boxJSON = `{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"box","namespace":"default","labels":{"a":"b"},` +
	`"creationTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"manager":"kubectl","operation":"Apply","fieldsV1":{"f:spec":{"f:image":{}}}}]},` +
	`"spec":{"image":"server:1","name":"main","replicas":0,"ports":[{"port":8080}],"rollingUpdate":"25%","resources":{"limits":{"cpu":"500m"}},` +
	`"podTemplate":{"metadata":{"labels":{"x":"y"}}}},"status":{"conditions":[{"type":"Ready","status":"True","reason":"Ready","message":"",` +
	`"lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`

func event(eventType, object string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", eventType, object)
}

// decodeStream decodes all events of a watch with the decoders of a serializer.
func decodeStream(tb testing.TB, negotiated runtime.NegotiatedSerializer, stream []byte) (types []watch.EventType, objects []runtime.Object, err error) {
	tb.Helper()
	objectDecoder, eventDecoder, framer, err := runtime.NewClientNegotiator(negotiated, kind.GroupVersion()).StreamDecoder("application/json", nil)
	if err != nil {
		tb.Fatal(err)
	}
	frames := framer.NewFrameReader(io.NopCloser(bytes.NewReader(stream)))
	decoder := restwatch.NewDecoder(streaming.NewDecoder(frames, eventDecoder), objectDecoder)
	for {
		eventType, obj, err := decoder.Decode()
		if errors.Is(err, io.EOF) {
			return types, objects, nil
		}
		if err != nil {
			return types, objects, err
		}
		types, objects = append(types, eventType), append(objects, obj)
	}
}

// TestDecodesAsClientGo compares with client-go's own decoder.
func TestDecodesAsClientGo(t *testing.T) {
	scheme := newScheme(t)
	clientGo := serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(scheme)}
	for name, stream := range map[string]string{
		"an object":                   event("ADDED", boxJSON),
		"several events":              event("ADDED", boxJSON) + event("MODIFIED", boxJSON) + event("DELETED", boxJSON),
		"a bookmark":                  event("BOOKMARK", `{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"resourceVersion":"7","annotations":{"k8s.io/initial-events-end":"true"}}}`),
		"an error":                    event("ERROR", `{"apiVersion":"v1","kind":"Status","status":"Failure","message":"too old","reason":"Expired","code":410}`),
		"a member twice":              event("ADDED", `{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"a","name":"b"}}`),
		"an unknown field":            event("ADDED", `{"apiVersion":"model.github.com/v1","kind":"ModelBox","spec":{"unknown":1,"image":"x"}}`),
		"another case":                event("ADDED", `{"apiVersion":"model.github.com/v1","kind":"ModelBox","spec":{"Image":"x"}}`),
		"a null":                      event("ADDED", `{"apiVersion":"model.github.com/v1","kind":"ModelBox","metadata":{"name":"a"},"spec":{"ports":null,"resources":null}}`),
		"another kind":                event("ADDED", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a"}}`),
		"an unknown kind":             event("ADDED", `{"apiVersion":"x/v1","kind":"Y"}`),
		"no kind":                     event("ADDED", `{"metadata":{"name":"a"}}`),
		"an event of an unknown type": event("X", boxJSON),
		"half an event":               event("ADDED", boxJSON)[:100],
		"no JSON":                     "x\n",
		"text that is not UTF-8":      event("ADDED", "{\"apiVersion\":\"model.github.com/v1\",\"kind\":\"ModelBox\",\"spec\":{\"image\":\"\xff\"}}"),
		"nothing":                     "",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantTypes, want, wantErr := decodeStream(t, clientGo, []byte(stream))
			types, got, err := decodeStream(t, newSerializer(scheme, kind), []byte(stream))
			if !reflect.DeepEqual(types, wantTypes) || !equality.Semantic.DeepEqual(got, want) {
				t.Errorf("decoded %v %+v, client-go %v %+v", types, got, wantTypes, want)
			}
			if fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("error %v, client-go's %v", err, wantErr)
			}
		})
	}
}

// TestWatchRequests checks the requests of an informer that a server gets.
func TestWatchRequests(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if r.URL.Path != "/apis/model.github.com/v1/modelboxes" || query.Get("watch") != "true" || query.Get("allowWatchBookmarks") != "true" ||
			query.Get("resourceVersion") != "7" {
			http.Error(w, "not the expected watch: "+r.URL.String(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, event("ADDED", boxJSON))
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(kind, kind.GroupVersion().WithResource("modelboxes"), kind.GroupVersion().WithResource("modelbox"), meta.RESTScopeNamespace)
	lw := listerWatcher{config: configFor(&rest.Config{Host: server.URL}, scheme, kind), client: server.Client(), mapper: mapper, kind: kind,
		parameters: runtime.NewParameterCodec(scheme)}
	stream, err := lw.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "7"})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Stop()
	got := <-stream.ResultChan()
	if box, ok := got.Object.(*modelv1.ModelBox); !ok || got.Type != watch.Added || box.Name != "box" {
		t.Errorf("the watch event is %v %+v", got.Type, got.Object)
	}
}

func TestOnlyCustomResourcesHaveThisDecoder(t *testing.T) {
	t.Parallel()
	scheme := newScheme(t)
	if got, ok := customKind(scheme, &modelv1.ModelBox{}); !ok || got != kind {
		t.Errorf("the kind of a ModelBox is %v, custom: %t", got, ok)
	}
	for _, obj := range []runtime.Object{&corev1.Service{}, &metav1.PartialObjectMetadata{}} {
		if got, ok := customKind(scheme, obj); ok {
			t.Errorf("%T has the custom kind %v", obj, got)
		}
	}
}

func BenchmarkWatchEvent(b *testing.B) {
	scheme := newScheme(b)
	clientGo := serializer.WithoutConversionCodecFactory{CodecFactory: serializer.NewCodecFactory(scheme)}
	stream := bytes.Repeat([]byte(event("ADDED", boxJSON)), 100)
	for name, negotiated := range map[string]runtime.NegotiatedSerializer{"ours": newSerializer(scheme, kind), "client-go": clientGo} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, objects, err := decodeStream(b, negotiated, stream); err != nil || len(objects) != 100 {
					b.Fatal(len(objects), err)
				}
			}
		})
	}
}
