// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/all"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// The limits in config/controller, which config/pods_test.go compares with each other.
const goMemoryLimit, memoryLimit = "460MiB", "512Mi"

// controllerProcess starts the controller and returns a function that returns the most memory that it
// has had (VmHWM of proc_pid_status(5)), in bytes.
func controllerProcess(t *testing.T, cfg *rest.Config, environment ...string) (peak func() int64) {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(cfg, kubeconfig); err != nil {
		t.Fatal(err)
	}
	cmd := processCommand(kubeconfig, "--leader-elect=false")
	cmd.Env = append(cmd.Env, append(environment, "GOMEMLIMIT="+goMemoryLimit)...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // It was killed.
	})
	return func() int64 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(text)
		if found == nil {
			t.Fatal("the process has ended")
		}
		kilobytes, _ := strconv.ParseInt(string(found[1]), 10, 64) // These are digits.
		return kilobytes << 10
	}
}

func checkPeak(t *testing.T, peak int64) {
	t.Helper()
	limit := resource.MustParse(memoryLimit)
	t.Logf("at most %d MiB", peak>>20)
	if peak > limit.Value() {
		t.Errorf("the controller needs %d MiB, more than its limit, %s", peak>>20, memoryLimit)
	}
}

// placeholder is the name in an encoded object, where the name of each object is written.
const placeholder = "object-000000"

// kindServed is a kind of which a server has objects of 1 MB, each of them a copy of one of a few.
type kindServed struct {
	schema.GroupVersionKind
	plural string
	// objects are encoded, in protobuf for the kinds of Kubernetes and in JSON for our own; added are
	// the events of a watch with them.
	objects, added []string
	bookmark       string
	protobuf       bool
}

func newKind(plural string, kind schema.GroupVersionKind, objects ...client.Object) *kindServed {
	k := &kindServed{GroupVersionKind: kind, plural: plural, protobuf: kind.Group == "" || kind.Group == "apps" || kind.Group == "autoscaling"}
	last := objects[0].DeepCopyObject().(client.Object)
	last.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	last.SetResourceVersion("1")
	k.bookmark = k.event(watch.Bookmark, k.encode(last))
	for _, obj := range objects {
		k.objects = append(k.objects, k.encode(obj))
		k.added = append(k.added, k.event(watch.Added, k.objects[len(k.objects)-1]))
	}
	return k
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err) // The objects are those of the test.
	}
	return value
}

func (k *kindServed) encode(obj client.Object) string {
	if k.protobuf {
		return string(must(obj.(interface{ Marshal() ([]byte, error) }).Marshal()))
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return string(must(json.Marshal(obj)))
}

// write writes the i-th object, which is one of several, under its name.
func write(w io.Writer, several []string, i int) error {
	name := fmt.Sprintf("object-%06d", i)
	parts := strings.Split(several[i%len(several)], placeholder)
	for at, part := range parts {
		if at > 0 {
			part = name + part
		}
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// envelope encodes an object, or a list, as a response has it in protobuf.
func (k *kindServed) envelope(kind string, object []byte) []byte {
	apiVersion, _ := k.ToAPIVersionAndKind()
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: object}
	return append([]byte("k8s\x00"), must(unknown.Marshal())...)
}

func (k *kindServed) event(what watch.EventType, object string) string {
	if !k.protobuf {
		return fmt.Sprintf(`{"type":%q,"object":%s}`, what, object)
	}
	event := &metav1.WatchEvent{Type: string(what), Object: runtime.RawExtension{Raw: k.envelope(k.Kind, []byte(object))}}
	data := must(event.Marshal())
	return string(append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...))
}

// list writes a page.
func (k *kindServed) list(w io.Writer, from, to, count int) error {
	meta := metav1.ListMeta{ResourceVersion: "1"}
	if to < count {
		meta.Continue = strconv.Itoa(to)
	}
	var b bytes.Buffer
	if !k.protobuf {
		fmt.Fprintf(&b, `{"apiVersion":%q,"kind":"%sList","metadata":%s,"items":[`, k.GroupVersion(), k.Kind, must(json.Marshal(meta)))
		for i := from; i < to; i++ {
			if i > from {
				b.WriteByte(',')
			}
			if err := write(&b, k.objects, i); err != nil {
				return err
			}
		}
		b.WriteString("]}")
		_, err := b.WriteTo(w)
		return err
	}
	field := func(number byte, length int) { // All lists have metadata as field 1 and items as field 2.
		b.Write(binary.AppendUvarint([]byte{number<<3 | 2}, uint64(length)))
	}
	encoded := must(meta.Marshal())
	field(1, len(encoded))
	b.Write(encoded)
	for i := from; i < to; i++ {
		field(2, len(k.objects[i%len(k.objects)]))
		if err := write(&b, k.objects, i); err != nil {
			return err
		}
	}
	_, err := w.Write(k.envelope(k.Kind+"List", b.Bytes()))
	return err
}

// crowd is an API server with count objects of 1 MB of each kind that the controller watches.
type crowd struct {
	kinds []*kindServed
	count int
	// watchList is false for a server that has no lists in watches.
	watchList bool

	mu sync.Mutex
	// reported are the objects whose status was written.
	reported map[string]bool
}

func newCrowd(count int, watchList bool) *crowd {
	const size = 1_000_000
	long := strings.Repeat("x", size)
	named := func(owner string) metav1.ObjectMeta {
		meta := metav1.ObjectMeta{Name: placeholder, Namespace: "team", UID: placeholder, ResourceVersion: "1", Labels: map[string]string{api.LabelManagedBy: api.ManagedBy}}
		if owner != "" {
			meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: owner, UID: "owner"}, modelv1.SchemeGroupVersion.WithKind("ModelBox"))}
		}
		return meta
	}
	noted := named("")
	noted.Annotations = map[string]string{"note": long}
	var template corev1.PodTemplateSpec
	template.Spec.Containers = []corev1.Container{{Name: "main"}}
	for range size / 10 { // Each takes 8 bytes in protobuf, and six times as much in memory.
		template.Spec.Containers[0].Env = append(template.Spec.Containers[0].Env, corev1.EnvVar{Name: "ab"})
	}
	var deployments, daemons, services, scalers []client.Object
	for _, meta := range []metav1.ObjectMeta{noted, named("another"), named(placeholder)} {
		deployments = append(deployments, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}})
		daemons = append(daemons, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}})
		services = append(services, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ExternalName: long}})
		scalers = append(scalers, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta, Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Name: long},
		}})
	}
	c := &crowd{count: count, watchList: watchList, reported: map[string]bool{}, kinds: []*kindServed{
		newKind("deployments", appsv1.SchemeGroupVersion.WithKind("Deployment"), deployments...),
		newKind("daemonsets", appsv1.SchemeGroupVersion.WithKind("DaemonSet"), daemons...),
		newKind("services", corev1.SchemeGroupVersion.WithKind("Service"), services...),
		newKind("horizontalpodautoscalers", autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), scalers...),
	}}
	deleted := metav1.Now()
	noted.DeletionTimestamp = &deleted // No children are created.
	for _, kind := range all.Kinds {
		resource := testenv.Resource(kind.GVK)
		large, deleting := &modelv1.ModelBox{ObjectMeta: named("")}, &modelv1.ModelBox{ObjectMeta: noted}
		large.Spec.Image = long
		c.kinds = append(c.kinds, newKind(resource.Resource, kind.GVK, large, deleting))
	}
	return c
}

// ServeHTTP implements http.Handler.
func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, k := range c.kinds {
		if strings.HasSuffix(r.URL.Path, "/"+k.plural) && r.Method == http.MethodGet {
			c.read(w, r, k)
			return
		}
	}
	switch {
	case r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/status"):
		c.mu.Lock()
		c.reported[r.URL.Path] = true
		c.mu.Unlock()
	case r.URL.Path == "/api":
		respond(w, http.StatusOK, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	case r.URL.Path == "/apis" || strings.Count(r.URL.Path, "/") <= 3:
		c.discover(w, r)
		return
	}
	respond(w, http.StatusNotFound, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
}

// discover says which kinds there are.
func (c *crowd) discover(w http.ResponseWriter, r *http.Request) {
	groups := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
	seen := map[string]bool{"": true}
	for _, k := range c.kinds {
		version := metav1.GroupVersionForDiscovery{GroupVersion: k.GroupVersion().String(), Version: k.Version}
		if !seen[k.Group] {
			seen[k.Group] = true
			groups.Groups = append(groups.Groups, metav1.APIGroup{Name: k.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
		}
		if strings.HasSuffix(r.URL.Path, "/"+version.GroupVersion) {
			list.GroupVersion = version.GroupVersion
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.plural, Kind: k.Kind, Namespaced: true})
		}
	}
	if r.URL.Path == "/apis" {
		respond(w, http.StatusOK, groups)
	} else {
		respond(w, http.StatusOK, list)
	}
}

func (c *crowd) read(w http.ResponseWriter, r *http.Request, k *kindServed) {
	query := r.URL.Query()
	contentType := "application/json"
	if k.protobuf {
		contentType = "application/vnd.kubernetes.protobuf"
	}
	if query.Get("watch") == "" {
		from, _ := strconv.Atoi(query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		if limit == 0 || query.Get("resourceVersion") == "0" { // The API server's cache ignores the limit.
			limit = c.count
		}
		w.Header().Set("Content-Type", contentType)
		_ = k.list(w, from, min(from+limit, c.count), c.count) // The client may have ended.
		return
	}
	initial := query.Get("sendInitialEvents") == "true"
	if initial && !c.watchList {
		respond(w, http.StatusUnprocessableEntity, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity})
		return
	}
	if k.protobuf {
		contentType += ";stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	for i := 0; initial && i < c.count; i++ {
		if err := write(w, k.added, i); err != nil {
			return
		}
	}
	if initial {
		_, _ = io.WriteString(w, k.bookmark)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func respond(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(must(json.Marshal(body)))
}

// sizeOf returns one of two numbers: the larger one if MODELBOX_LONG is set.
func sizeOf(short, long int) int {
	if os.Getenv("MODELBOX_LONG") != "" {
		return long
	}
	return short
}

// The controller stays below its memory limit with thousands of objects of 1 MB of each kind that
// it watches, from its start, whether the API server has lists in watches or not; and it says of each
// of its own kinds that its spec is too large.
func TestMemoryWithLargeObjects(t *testing.T) {
	count := sizeOf(60, 10_000)
	for name, watchList := range map[string]bool{"WatchList": true, "lists": false} {
		t.Run(name, func(t *testing.T) {
			c := newCrowd(count, watchList)
			server := httptest.NewServer(c)
			t.Cleanup(server.CloseClientConnections)
			peak := controllerProcess(t, &rest.Config{Host: server.URL})
			reported := func() int {
				c.mu.Lock()
				defer c.mu.Unlock()
				return len(c.reported)
			}
			want := len(all.Kinds) * count / 2
			awaitCount(t, want, reported)
			checkPeak(t, peak())
		})
	}
}

func awaitCount(t *testing.T, want int, have func() int) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Duration(sizeOf(10, 120)) * time.Minute); have() < want; <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d", have(), want)
		}
	}
}
