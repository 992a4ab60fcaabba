// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/api"
	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/configuration"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// referring returns the children of an object that refers to a ConfigMap, with a live annotation.
func referring(restart modelv1.RestartOnChange, live string) *State {
	desired, stored := &appsv1.Deployment{}, &appsv1.Deployment{}
	desired.Spec.Template.Spec.Containers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}}},
	}}}
	setConfiguration(&stored.Spec.Template, live)
	return &State{
		Writer:   &status.Writer{},
		Status:   &modelv1.ChildrenStatus{Configuration: live},
		Workload: &Workload{Owner: &appv1.App{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "uid"}}, RestartOnChange: restart},
		Pods:     &apply.Child{Desired: desired, Live: stored},
	}
}

// read reads the child as it would be in the API server, and in the cache but that the cache has
// only hashes.
func read(t *testing.T, r *Reconciler, c *State) {
	t.Helper()
	stored := c.Pods.Live.(*appsv1.Deployment).DeepCopy()
	stored.Namespace, stored.Name = c.Owner.GetNamespace(), c.Owner.GetName()
	reference := []metav1.OwnerReference{*metav1.NewControllerRef(c.Owner, appv1.SchemeGroupVersion.WithKind("App"))}
	stored.OwnerReferences = reference
	c.Pods.Desired.SetOwnerReferences(reference)
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(stored).Build()
	r.Writer = apply.Writer{Access: apply.Access{Client: api, Live: api}}
	if err := r.Writer.Read(t.Context(), c.owner(), c.Pods); err != nil {
		t.Fatal(err)
	}
}

// An object that does not ask for it reads nothing: these sources have no client.
func TestWithoutRestartOnChangeNothingIsRead(t *testing.T) {
	t.Parallel()
	for _, r := range []*Reconciler{{}, {Configuration: &configuration.Sources{}}} {
		for _, value := range []modelv1.RestartOnChange{"", modelv1.RestartOnChangeNone} {
			c := referring(value, "")
			if unread, err := r.configure(t.Context(), c); errors.Join(unread, err) != nil || c.Pods.Expect != nil || kinds.PodTemplate(c.Pods.Desired).Annotations != nil {
				t.Errorf("%q: %v, %v", value, errors.Join(unread, err), c.Pods.Desired)
			}
		}
	}
}

func TestARolloutWaitsWhileItIsNotKnownWhetherTheNamespaceIsFrozen(t *testing.T) {
	t.Parallel()
	cut := errors.New("the connection was cut")
	const live = "ConfigMap/a 0123456789abcdef"
	for name, test := range map[string]struct {
		err, want error
		held      bool
	}{
		"not frozen":   {},
		"no answer":    {err: cut, want: cut, held: true},
		"may not read": {err: apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "team", errors.New("no permission")), held: true},
	} {
		c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}, Data: map[string]string{"a": "b"}},
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}).Build()
		namespaces := interceptor.NewClient(c, interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if test.err != nil {
					return test.err
				}
				return c.Get(ctx, key, obj, opts...)
			},
		})
		r := &Reconciler{
			Shared: Shared{Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time)}, Freeze: freeze.Reader{Live: namespaces}, Configuration: &configuration.Sources{
				Metadata: c, Live: c, Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time), Watch: func(context.Context, string) error { return nil },
			},
		}
		children := referring(modelv1.RestartOnChangeReferenced, live)
		read(t, r, children)
		unread, err := r.configure(t.Context(), children)
		if err != nil || !errors.Is(unread, test.want) {
			t.Errorf("%s: the errors are %v and %v, want %v", name, unread, err, test.want)
		}
		held := kinds.PodTemplate(children.Pods.Desired).Annotations[api.AnnotationConfiguration] == live
		waits := test.held && test.want == nil
		if held != test.held || (children.configured.reason == status.ReasonForbidden) != waits || (children.configured.again == freeze.Again) != waits {
			t.Errorf("%s: held: %t, %+v", name, held, children.configured)
		}
	}
}

// Objects take turns, but for those that write nothing, or wait for something else. One that has
// nothing to roll out any more leaves.
func TestARolloutWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "a"}, Data: map[string]string{"a": "b"}}
	c := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(settings).Build()
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	r := &Reconciler{Shared: Shared{Clock: clk, Queue: &configuration.RolloutQueue{PerMinute: 1, Clock: clk}}, Configuration: &configuration.Sources{
		Metadata: c, Live: c, Clock: clk, Watch: func(context.Context, string) error { return nil },
	}}
	const old = "ConfigMap/a 0123456789abcdef"
	// keep returns the annotation that is desired while an object has a live one, and its message.
	keep := func(name, live string, change func(*State)) (annotation, message string) {
		t.Helper()
		children := referring(modelv1.RestartOnChangeReferenced, live)
		children.Owner.SetName(name)
		change(children)
		read(t, r, children)
		if unread, err := r.configure(t.Context(), children); errors.Join(unread, err) != nil {
			t.Fatal(unread, err)
		}
		return kinds.PodTemplate(children.Pods.Desired).Annotations[api.AnnotationConfiguration], children.configured.reason + " " + children.configured.waiting
	}
	plain := func(*State) {}
	closed := func(c *State) {
		c.Windows.Windows = []modelv1.Window{{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	}
	current, _ := keep("one", old, plain)
	for _, step := range []struct {
		what, name, live string
		change           func(*State)
		held             bool
		says             string
	}{
		{"the second", "two", old, plain, true, "RolloutQueued rollout of changed ConfigMap/a is on hold: queued (position 1; 1 rollouts per minute)"},
		{"the third", "three", old, plain, true, "position 2;"},
		{"nothing to write", "paused", old, func(c *State) { c.Paused = true }, false, ""},
		{"the data is back", "two", current, plain, false, ""},
		{"the third again", "three", old, plain, true, "position 1;"},
		{"no window is open", "three", old, closed, true, "WaitingForWindow"},
		{"it left", "two", old, plain, true, "position 1;"},
	} {
		annotation, message := keep(step.name, step.live, step.change)
		if held := annotation == old; held != step.held || !strings.Contains(message, step.says) || !step.held && message != " " {
			t.Errorf("%s: held: %t, %q", step.what, held, message)
		}
	}
	clk.SetTime(clk.Now().Add(time.Minute))
	if annotation, _ := keep("two", old, plain); annotation != current || current == old {
		t.Errorf("its turn: %q", annotation)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	window := func(schedule string, dates ...string) modelv1.Windows {
		return modelv1.Windows{Windows: []modelv1.Window{{Schedule: schedule, Duration: metav1.Duration{Duration: time.Hour}}}, SkipDates: dates}
	}
	for name, test := range map[string]struct {
		spec  modelv1.Windows
		cause string
		again time.Duration
	}{
		"no windows":                  {},
		"it opens now":                {spec: window("0 12 * * *")},
		"it is open":                  {spec: window("30 11 * * *")},
		"it ends now":                 {window("0 11 * * *"), "opens at 2026-11-25T11:00:00Z", trigger.Longest},
		"it opens soon":               {window("2 12 * * *"), "opens at 2026-11-24T12:02:00Z", 2 * time.Minute},
		"it opens not on this date":   {window("0 12 * * *", "2026-11-24"), "opens at 2026-11-25T12:00:00Z", trigger.Longest},
		"stored without a check":      {window("never"), "invalid", 0},
		"only dates, without a check": {modelv1.Windows{SkipDates: []string{"2026-11-25"}}, "invalid", 0},
	} {
		got := closed(test.spec, noon)
		if (got.reason != "") != (test.cause != "") || !strings.Contains(got.cause, test.cause) || got.again != test.again {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What was fetched for a pod template is known for its next configuration as well.
func TestTheConfigurationIsNoOtherModel(t *testing.T) {
	t.Parallel()
	w := withModel(t, uri, "", released)
	hash := func(annotations map[string]string) string {
		d := deploymentOf(t, w)
		d.Spec.Template.Annotations = annotations
		status, err := FetcherStatus(w, d)
		if err != nil || status == nil {
			t.Fatalf("%v, %v", status, err)
		}
		return status.TemplateHash
	}
	plain := hash(nil)
	if hash(map[string]string{api.AnnotationConfiguration: "ConfigMap/a 0123456789abcdef"}) != plain || hash(map[string]string{"a": "b"}) == plain {
		t.Error("the hash of the template depends on the configuration, or on nothing")
	}
}

// A child that cannot be read leaves what status says of its configuration.
func TestWhatIsRecordedOutlivesAFailedRead(t *testing.T) {
	t.Parallel()
	const live = "ConfigMap/a 0123456789abcdef"
	c := referring(modelv1.RestartOnChangeReferenced, live)
	c.Status.Template, c.Pods.Err = "hash", errors.New("the connection was cut")
	if c.recordConfiguration(); c.Status.Configuration != live || c.Status.Template != "hash" {
		t.Errorf("recorded are %q and %q", c.Status.Configuration, c.Status.Template)
	}
}
