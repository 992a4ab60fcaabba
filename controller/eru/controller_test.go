// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package eru

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/freeze"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/trigger"
	"github.com/modelbox-operator/modelbox-operator/test/fakeserver"
)

// fixture is a fake cluster with an Eru, a Deployment and a clock.
type fixture struct {
	t        *testing.T
	client   client.Client
	clock    *clocktesting.FakePassiveClock
	events   *events.FakeRecorder
	requests []string
	// before and after are called for each write. If before returns an error, the write
	// is not done; if after returns an error, the write is done and the client gets the
	// error.
	before, after func(write string) error
	// namespace is the error of reads of the Namespace.
	namespace error
}

func newScheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		tb.Fatal(err)
	}
	return scheme
}

// newFixture returns a fixture with some objects, at 11:59:30.
func newFixture(t *testing.T, objects ...client.Object) *fixture {
	t.Helper()
	w := &fixture{t: t, clock: clocktesting.NewFakePassiveClock(at("11:59:30")), events: events.NewFakeRecorder(100)}
	never := func(string) error { return nil }
	w.before, w.after = never, never
	builder := fake.NewClientBuilder().WithScheme(newScheme(t))
	index := target(nil)
	if err := index.Index(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	w.client = builder.
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).
		WithObjects(objects...).
		WithStatusSubresource(&mtsrev1.Eru{}, &appsv1.Deployment{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
				if _, ok := obj.(*metav1.PartialObjectMetadata); ok && w.namespace != nil {
					return w.namespace
				}
				return c.Get(ctx, key, obj, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
				return w.write(fmt.Sprintf("create %T", obj), func() error { return c.Create(ctx, obj, opts...) })
			},
			Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
				return w.write(fmt.Sprintf("patch %T", obj), func() error {
					if err := c.Patch(ctx, obj, patch, opts...); err != nil {
						return err
					}
					obj.SetGeneration(obj.GetGeneration() + 1) // As the API server does for changes of the spec.
					return c.Update(ctx, obj)
				})
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
				return w.write(fmt.Sprintf("patch %T/%s", obj, sub), func() error {
					return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
				})
			},
		}).Build()
	return w
}

// indexer adds indexes to a fake client.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, obj client.Object, field string, values client.IndexerFunc) error {
	i.WithIndex(obj, field, values)
	return nil
}

const (
	writeDeployment = "patch *v1.Deployment"
	writeStatus     = "patch *v1.Eru/status"
)

func (w *fixture) write(name string, do func() error) error {
	w.requests = append(w.requests, name)
	if err := w.before(name); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return w.after(name)
}

// reconcile sets the clock and reconciles the Eru as the controller does. It returns
// RequeueAfter.
func (w *fixture) reconcile(clock string) time.Duration {
	w.t.Helper()
	result, err := w.try(clock)
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *fixture) try(clock string) (reconcile.Result, error) {
	w.t.Helper()
	if clock != "" {
		w.clock.SetTime(at(clock))
	}
	w.requests = nil
	r := &Reconciler{Client: w.client, Recorder: w.events, Clock: w.clock, Freeze: freeze.Reader{Live: w.client}}
	return r.recorded().Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "web"}})
}

func (w *fixture) eru() *mtsrev1.Eru {
	w.t.Helper()
	return read(w, &mtsrev1.Eru{})
}

func (w *fixture) deployment() *appsv1.Deployment {
	w.t.Helper()
	return read(w, &appsv1.Deployment{})
}

func read[T client.Object](w *fixture, obj T) T {
	w.t.Helper()
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "web"}, obj); err != nil {
		w.t.Fatal(err)
	}
	return obj
}

// edit changes the Eru's spec and generation.
func (w *fixture) edit(change func(*mtsrev1.EruSpec)) {
	w.t.Helper()
	obj := w.eru()
	change(&obj.Spec)
	obj.Generation++
	if err := w.client.Update(w.t.Context(), obj); err != nil {
		w.t.Fatal(err)
	}
}

// change changes the Deployment's spec, or its status if status is true.
func (w *fixture) change(status bool, change func(*appsv1.Deployment)) {
	w.t.Helper()
	d := w.deployment()
	change(d)
	var err error
	if status {
		err = w.client.Status().Update(w.t.Context(), d)
	} else {
		d.Generation++
		err = w.client.Update(w.t.Context(), d)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// expectStatus checks the Eru's status: phase, Ready condition, next scheduled time, and
// the history with the newest entry first.
func (w *fixture) expectStatus(want ...string) {
	w.t.Helper()
	st := w.eru().Status
	ready := meta.FindStatusCondition(st.Conditions, status.ConditionReady)
	if ready == nil {
		w.t.Fatal("there is no Ready condition")
	}
	next := time.Time{}
	if st.NextScheduleTime != nil {
		next = st.NextScheduleTime.Time
	}
	got := []string{fmt.Sprintf("%s %s %s next %s", st.Phase, ready.Status, ready.Reason, short(next))}
	for _, entry := range st.History {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s", short(entry.Slot.Time), entry.Result, entry.Reason))
		if entry.StartedAt != nil {
			line += " started " + short(entry.StartedAt.Time)
		}
		if entry.CompletedAt != nil {
			line += " completed " + short(entry.CompletedAt.Time)
		}
		got = append(got, line)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("the Eru (-want +got):\n%s", diff)
	}
}

// expectWrites checks the writes of the last reconcile.
func (w *fixture) expectWrites(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.requests); diff != "" {
		w.t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// expectRestartedAt checks the Deployment's restartedAt annotation.
func (w *fixture) expectRestartedAt(want string) {
	w.t.Helper()
	if got := w.deployment().Spec.Template.Annotations[api.AnnotationRestartedAt]; got != want {
		w.t.Errorf("restartedAt is %q, want %q", got, want)
	}
}

// condition reports whether a condition is true.
func (w *fixture) condition(name string) bool {
	return meta.IsStatusConditionTrue(w.eru().Status.Conditions, name)
}

func TestRestartIsOneDeploymentWriteBetweenTwoStatusWrites(t *testing.T) {
	w := newFixture(t, hourlyEru(), web())
	if sleep := w.reconcile("11:59:30"); sleep != 30*time.Second {
		t.Errorf("RequeueAfter is %v, want 30s", sleep)
	}
	w.expectWrites(writeStatus)
	w.expectStatus("Running True Scheduled next 12:00:00", "11:00:00 Skipped MissedDeadline")
	w.reconcile("11:59:59")
	w.expectWrites()

	w.reconcile("12:00:00")
	w.expectWrites(writeStatus, writeDeployment, writeStatus)
	w.expectRestartedAt("2026-03-02T12:00:00Z")
	w.expectStatus("Running True Scheduled next 13:00:00", "12:00:00 Restarted started 12:00:00", "11:00:00 Skipped MissedDeadline")
	if got := w.eru().Status.LastScheduleTime.Time; !got.Equal(at("12:00:00")) {
		t.Errorf("lastScheduleTime is %v", got)
	}
	if got := w.deployment().Spec.Template; got.Annotations["team"] != "search" || len(got.Spec.Containers) != 1 {
		t.Errorf("the restart changed more than its annotation: %v", got)
	}

	w.change(true, rolling)
	w.reconcile("12:00:20")
	w.expectWrites()
	w.change(true, rolledOut)
	w.reconcile("12:01:10")
	w.expectWrites(writeStatus)
	w.expectStatus("Running True Scheduled next 13:00:00", "12:00:00 Restarted started 12:00:00 completed 12:01:10", "11:00:00 Skipped MissedDeadline")
	if sleep := w.reconcile("12:01:11"); sleep != trigger.Longest {
		t.Errorf("RequeueAfter is %v, want the maximum %v", sleep, trigger.Longest)
	}
	w.expectWrites()
}

func recent(o *mtsrev1.Eru) { o.CreationTimestamp = metav1.NewTime(at("11:30:00")) }

func TestARefusedRestartIsRetriedUntilTheDeadline(t *testing.T) {
	w := newFixture(t, hourlyEru(recent), web())
	refusal := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("policy says no"))
	w.before = func(write string) error {
		if write == writeDeployment {
			return refusal
		}
		return nil
	}
	if sleep := w.reconcile("12:00:00"); sleep != time.Second {
		t.Errorf("RequeueAfter is %v, want 1s", sleep)
	}
	w.expectWrites(writeStatus, writeDeployment, writeStatus)
	w.expectStatus("Running False Forbidden next 12:00:00")
	if message := meta.FindStatusCondition(w.eru().Status.Conditions, status.ConditionReady).Message; !strings.Contains(message, "policy says no") {
		t.Errorf("the API server's message is missing: %s", message)
	}
	if sleep := w.reconcile("12:01:00"); sleep != time.Minute {
		t.Errorf("RequeueAfter is %v, want 1m", sleep)
	}
	w.expectWrites(writeStatus, writeDeployment, writeStatus)

	w.reconcile("12:10:01")
	w.expectWrites(writeStatus)
	w.expectStatus("Failed False Forbidden next 13:00:00", "12:00:00 Failed Forbidden")
	if !w.condition(status.ConditionStalled) || w.condition(status.ConditionReconciling) {
		t.Error("Stalled is not true, or Reconciling is true")
	}
	w.reconcile("12:20:00")
	w.expectWrites()

	w.before = w.after
	w.reconcile("13:00:00")
	w.expectStatus("Running True Scheduled next 14:00:00", "13:00:00 Restarted started 13:00:00", "12:00:00 Failed Forbidden")
	if w.condition(status.ConditionStalled) {
		t.Error("Stalled is still true")
	}
}

func TestRefusalReasonIsAValidConditionReason(t *testing.T) {
	refusal := func(reason string) error {
		return apply.Refused("restarting", web(), &apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReason(reason)}})
	}
	for _, test := range []struct {
		err  error
		want string
	}{
		{refusal("Forbidden"), "Forbidden"},
		{fmt.Errorf("wrapped: %w", refusal("Invalid")), "Invalid"},
		{refusal(""), "Refused"},
		{refusal("not on a Friday"), "Refused"},
		{refusal(strings.Repeat("No", 40)), "Refused"},
		{errors.New("the connection was cut"), ""},
		{nil, ""},
	} {
		if got := refusalReason(test.err); got != test.want {
			t.Errorf("the reason for %v is %q, want %q", test.err, got, test.want)
		}
	}
}

// status.pending has the scheduled time that waits, and since when for this reason; it stays with a
// failure until the next one.
func TestPending(t *testing.T) {
	w := newFixture(t, hourlyEru(recent), web(rolling))
	refusal := apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", errors.New("policy says no"))
	w.before = func(write string) error {
		if write == writeDeployment {
			return refusal
		}
		return nil
	}
	for _, step := range []struct{ clock, want string }{
		{"11:59:59", ""},
		{"12:00:00", "12:00:00 RolloutInProgress since 12:00:00"},
		{"12:01:00", "12:00:00 RolloutInProgress since 12:00:00"},
		{"12:02:00", "12:00:00 Forbidden since 12:02:00"},
		{"12:04:00", "12:00:00 Forbidden since 12:02:00"},
		{"12:10:01", "12:00:00 Forbidden since 12:02:00"},
		{"12:20:00", "12:00:00 Forbidden since 12:02:00"},
		{"13:00:00", ""},
	} {
		switch step.clock {
		case "12:02:00":
			w.change(true, rolledOut)
		case "13:00:00":
			w.before = w.after
		}
		w.reconcile(step.clock)
		got := ""
		if p := w.eru().Status.Pending; p != nil {
			got = fmt.Sprintf("%s %s since %s", short(p.Slot.Time), p.Reason, short(p.Since.Time))
		}
		if got != step.want {
			t.Errorf("at %s: %q, want %q", step.clock, got, step.want)
		}
	}
}

// What status says of the next scheduled time is what will happen as far as it is known, also just
// after a restart.
func TestAnnouncement(t *testing.T) {
	windowed := func(o *mtsrev1.Eru) {
		o.Spec.Windows.Windows = []modelv1.Window{{Schedule: "0 12 * * *", Duration: metav1.Duration{Duration: time.Hour}}}
	}
	for _, test := range []struct {
		eru        func(*mtsrev1.Eru)
		deployment func(*appsv1.Deployment)
		clock      string
		want       string
	}{
		{recent, func(*appsv1.Deployment) {}, "11:59:00", `next restart of Deployment "web" at 2026-03-02T12:00:00Z`},
		{windowed, func(*appsv1.Deployment) {}, "11:59:00", `next restart of Deployment "web" at 2026-03-02T12:00:00Z`},
		{windowed, func(*appsv1.Deployment) {}, "12:00:00", "the next scheduled time, 2026-03-02T13:00:00Z, is outside of spec.windows and will be skipped"},
		{recent, restartedBy("2030-01-01T00:00:00Z"), "11:59:00", "scheduled times are skipped until 2030-01-01T00:00:00Z"},
		{recent, restartedBy("2030-01-01T00:00:00Z"), "12:00:00", "scheduled times are skipped until 2030-01-01T00:00:00Z"},
	} {
		w := newFixture(t, hourlyEru(test.eru), web(test.deployment))
		w.reconcile(test.clock)
		if got := meta.FindStatusCondition(w.eru().Status.Conditions, status.ConditionReady).Message; !strings.HasPrefix(got, test.want) {
			t.Errorf("at %s: %q, want %q", test.clock, got, test.want)
		}
	}
}

// A restart is only written to the version of the Deployment for which it was decided.
func TestDeploymentIsChangedAfterTheDecision(t *testing.T) {
	w := newFixture(t, hourlyEru(recent), web())
	w.before = func(write string) error {
		if write == writeDeployment {
			w.before = w.after
			w.change(false, paused)
		}
		return nil
	}
	if _, err := w.try("12:00:00"); !apierrors.IsConflict(err) {
		t.Fatalf("the error is %v, want a conflict", err)
	}
	w.reconcile("12:00:01")
	w.expectRestartedAt("")
	w.expectStatus("Running True Scheduled next 13:00:00", "12:00:00 Skipped DeploymentPaused")
}

func TestAMissingDeployment(t *testing.T) {
	w := newFixture(t, hourlyEru(recent))
	w.reconcile("11:59:30")
	w.expectStatus("Failed False TargetNotFound next 12:00:00")
	w.reconcile("12:00:00")
	w.expectWrites(writeStatus)
	w.expectStatus("Failed False TargetNotFound next 13:00:00", "12:00:00 Skipped TargetNotFound")
	w.reconcile("12:30:00")
	w.expectWrites()
	if err := w.client.Create(t.Context(), web(createdAt("12:31:00"))); err != nil {
		t.Fatal(err)
	}
	w.reconcile("12:31:00")
	w.expectStatus("Running True Scheduled next 13:00:00", "12:00:00 Skipped TargetNotFound")
	w.reconcile("13:00:00")
	w.expectRestartedAt("2026-03-02T13:00:00Z")
}

func TestADisabledEru(t *testing.T) {
	w := newFixture(t, hourlyEru(recent), web())
	w.edit(func(s *mtsrev1.EruSpec) { s.Enabled = false })
	if sleep := w.reconcile("11:59:30"); sleep != 0 {
		t.Errorf("RequeueAfter is %v, want none", sleep)
	}
	w.expectStatus("Stopped True Disabled next never")
	w.reconcile("12:00:00")
	w.expectWrites()

	w.edit(func(s *mtsrev1.EruSpec) { s.Enabled = true })
	w.reconcile("12:00:01")
	w.expectStatus("Running True Scheduled next 13:00:00")
	w.expectRestartedAt("")

	w.change(true, rolling)
	w.reconcile("13:00:00")
	w.edit(func(s *mtsrev1.EruSpec) { s.Enabled = false })
	w.reconcile("13:01:00")
	w.expectStatus("Stopped True Disabled next never", "13:00:00 Skipped Disabled")

	if err := w.client.Delete(t.Context(), w.deployment()); err != nil {
		t.Fatal(err)
	}
	w.reconcile("13:02:00")
	w.expectStatus("Stopped False TargetNotFound next never", "13:00:00 Skipped Disabled")
}

// An object that was stored without admission is defaulted in memory, or reported as
// invalid.
func TestAnObjectWithoutAdmission(t *testing.T) {
	bare := hourlyEru(recent, func(o *mtsrev1.Eru) { o.Spec = mtsrev1.EruSpec{Enabled: true, Schedule: "0 * * * *"} })
	w := newFixture(t, bare, web())
	w.reconcile("12:00:00")
	w.expectRestartedAt("2026-03-02T12:00:00Z")
	if spec := w.eru().Spec; spec.DeploymentName != "" || spec.HistoryLimit != nil {
		t.Errorf("the defaults were written: %v", spec)
	}

	w = newFixture(t, hourlyEru(recent, func(o *mtsrev1.Eru) { o.Spec.Schedule, o.Spec.TimeZone = "* * *", "Mars" }), web())
	if sleep := w.reconcile("12:00:00"); sleep != 0 {
		t.Errorf("RequeueAfter is %v, want none until the spec changes", sleep)
	}
	w.expectStatus("Failed False InvalidSpec next never")
	w.expectRestartedAt("")
	message := meta.FindStatusCondition(w.eru().Status.Conditions, status.ConditionStalled).Message
	for _, part := range []string{"spec.schedule", "spec.timeZone"} {
		if !strings.Contains(message, part) {
			t.Errorf("%s is not named: %s", part, message)
		}
	}
	w.reconcile("13:00:00")
	w.expectWrites()
}

func TestHistoryIsBounded(t *testing.T) {
	w := newFixture(t, hourlyEru(recent, func(o *mtsrev1.Eru) { o.Spec.HistoryLimit = new(int32(2)) }), web(paused))
	w.reconcile("12:00:00")
	w.reconcile("13:00:00")
	w.reconcile("14:00:00")
	w.expectStatus("Running True Scheduled next 15:00:00", "14:00:00 Skipped DeploymentPaused", "13:00:00 Skipped DeploymentPaused")
	w.edit(func(s *mtsrev1.EruSpec) { s.HistoryLimit = new(int32(0)) })
	w.reconcile("14:00:01")
	w.expectStatus("Running True Scheduled next 15:00:00")
	w.reconcile("15:00:00")
	w.expectStatus("Running True Scheduled next 16:00:00")
	if got := w.eru().Status.LastScheduleTime.Time; !got.Equal(at("15:00:00")) {
		t.Errorf("lastScheduleTime is %v", got)
	}
}

func TestEventsForScheduledTimes(t *testing.T) {
	w := newFixture(t, hourlyEru(recent), web())
	w.reconcile("12:00:00")
	w.change(false, paused)
	w.reconcile("13:00:00")
	w.reconcile("13:00:01")
	close(w.events.Events)
	var got []string
	for event := range w.events.Events {
		got = append(got, event)
	}
	want := []string{
		"Normal Restarted scheduled time 2026-03-02T12:00:00Z",
		"Normal Skipped scheduled time 2026-03-02T13:00:00Z: DeploymentPaused",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// The metrics are global, so this test is not parallel.
func TestMetrics(t *testing.T) {
	const next, done, late = "modelbox_eru_next_restart_timestamp_seconds", "modelbox_eru_restarts_total", "modelbox_eru_restart_lateness_seconds"
	w := newFixture(t, hourlyEru(recent), web())
	before := scrape(t)
	w.reconcile("11:59:30")
	if got := scrape(t)[next+" web default"]; got != float64(at("12:00:00").Unix()) {
		t.Errorf("the next restart is at %v", got)
	}
	w.reconcile("12:00:07")
	after := scrape(t)
	if got := after[next+" web default"]; got != float64(at("13:00:00").Unix()) {
		t.Errorf("the next restart is at %v", got)
	}
	if got := after[done+" Restarted"] - before[done+" Restarted"]; got != 1 {
		t.Errorf("%v restarts were counted, want one", got)
	}
	if got := after[late] - before[late]; got != 7 {
		t.Errorf("it is %v s late, want 7", got)
	}
	if err := w.client.Delete(t.Context(), w.eru()); err != nil {
		t.Fatal(err)
	}
	w.reconcile("12:01:00")
	if got, ok := scrape(t)[next+" web default"]; ok {
		t.Errorf("a deleted Eru still has the metric %v", got)
	}
}

// scrape returns all metrics, by their names and the values of their labels. The value of
// a histogram is its sum.
func scrape(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			key := family.GetName()
			for _, label := range metric.GetLabel() {
				key += " " + label.GetValue()
			}
			out[key] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetHistogram().GetSampleSum()
		}
	}
	return out
}

func TestADeploymentEnqueuesItsErus(t *testing.T) {
	other := hourlyEru(func(o *mtsrev1.Eru) { o.Name, o.Spec.DeploymentName = "other", "web" })
	unnamed := hourlyEru(func(o *mtsrev1.Eru) { o.Spec.DeploymentName = "" })
	stranger := hourlyEru(func(o *mtsrev1.Eru) { o.Name, o.Spec.DeploymentName = "stranger", "db" })
	elsewhere := hourlyEru(func(o *mtsrev1.Eru) { o.Namespace = "elsewhere" })
	w := newFixture(t, other, unnamed, stranger, elsewhere)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	enqueue := target(w.client)
	enqueue.EnqueueNamed().Create(t.Context(), event.CreateEvent{Object: web()}, queue)
	var got []string
	for range queue.Len() {
		request, _ := queue.Get()
		got = append(got, request.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"default/other", "default/web"}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestAFreezeSkipsScheduledTimes(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default", Annotations: map[string]string{api.AnnotationFrozen: "holidays"}}}
	w := newFixture(t, hourlyEru(recent), web(), namespace)
	w.reconcile("")
	w.reconcile("12:00:00")
	w.expectWrites(writeStatus)
	w.expectRestartedAt("")
	w.expectStatus("Running True Scheduled next 13:00:00", "12:00:00 Skipped Frozen")
	w.reconcile("12:01:00")
	w.expectWrites()

	if err := w.client.Delete(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	w.reconcile("13:00:00")
	w.expectRestartedAt("2026-03-02T13:00:00Z")
	w.expectStatus("Running True Scheduled next 14:00:00", "13:00:00 Restarted started 13:00:00", "12:00:00 Skipped Frozen")
}

// Without the permission to read the Namespace it is not known whether it is frozen, so nothing is
// restarted.
func TestTheNamespaceMayNotBeRead(t *testing.T) {
	w := newFixture(t, hourlyEru(recent), web())
	w.namespace = apierrors.NewForbidden(schema.GroupResource{Resource: "namespaces"}, "default", errors.New("no permission"))
	w.reconcile("12:00:00")
	w.expectWrites(writeStatus)
	w.expectStatus("Running False Forbidden next 12:00:00")
	w.reconcile("12:10:01")
	w.expectStatus("Failed False Forbidden next 13:00:00", "12:00:00 Failed Forbidden")
	w.expectRestartedAt("")

	w.namespace = fakeserver.ErrCut
	if _, err := w.try("13:00:00"); !errors.Is(err, fakeserver.ErrCut) {
		t.Errorf("the error is %v, want that of the read, which is retried", err)
	}
	w.expectRestartedAt("")
}
