// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/modelbox-operator/modelbox-operator/controller/watches"
	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// fixture is a Sources with an API server, and counts what is read.
type fixture struct {
	*Sources
	t      *testing.T
	server client.WithWatch
	clock  *clocktesting.FakePassiveClock
	reads  []string
	// refused are the kinds that may not be watched, and the objects whose data may not be read.
	refused map[string]error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), refused: map[string]error{}}
	f.server = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	live := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if f.mu.TryLock() {
				f.mu.Unlock()
			} else {
				t.Error("a lock is held during a request")
			}
			f.reads = append(f.reads, key.Name)
			if err := f.refused[key.Name]; err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	f.Sources = &Sources{Metadata: f.server, Live: live, Clock: f.clock, Watch: func(_ context.Context, kind string) error { return f.refused[kind] }}
	return f
}

func (f *fixture) write(name, value string, labels map[string]string) {
	f.t.Helper()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	err := f.server.Get(f.t.Context(), client.ObjectKeyFromObject(obj), obj)
	obj.Labels, obj.Data = labels, map[string]string{"key": value}
	if apierrors.IsNotFound(err) {
		err = f.server.Create(f.t.Context(), obj)
	} else if err == nil {
		err = f.server.Update(f.t.Context(), obj)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) pass(d time.Duration) { f.clock.SetTime(f.clock.Now().Add(d)) }

func owner(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "team", Name: name}
}

// observe observes the settings for an owner, and compares the reads since the last call.
func (f *fixture) observe(name string, reads ...string) Observed {
	f.t.Helper()
	return f.observeAll(name, []workload.Reference{settings}, false, reads...)
}

func (f *fixture) observeAll(name string, refs []workload.Reference, live bool, reads ...string) Observed {
	f.t.Helper()
	out, err := f.Observe(f.t.Context(), owner(name), refs, live)
	if err != nil {
		f.t.Fatal(err)
	}
	if slices.Sort(f.reads); !slices.Equal(f.reads, reads) {
		f.t.Errorf("reads of %q, want %q", f.reads, reads)
	}
	f.reads = nil
	return out
}

func TestDataIsReadOnceForAChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("settings", "1", nil)
	first := f.observe("a", "settings")
	if f.observe("a"); first.Again != 0 || first.Note != "" || first.Digests[settings].Sum != data("key", "1") {
		t.Errorf("observed %+v", first)
	}
	f.observe("b")

	// Until nothing has changed for two seconds, the digest is not known, so that the line stays.
	for _, value := range []string{"2", "3", "4"} {
		f.write("settings", value, nil)
		if out := f.observe("a"); len(out.Digests) != 0 || out.Again != quiet {
			t.Errorf("after an edit: %+v", out)
		}
		f.pass(quiet - time.Second)
		if out := f.observe("a"); len(out.Digests) != 0 || out.Again != time.Second {
			t.Errorf("a second before: %+v", out)
		}
	}
	f.pass(time.Second)
	if out := f.observe("a", "settings"); out.Digests[settings].Sum != data("key", "4") || out.Again != 0 {
		t.Errorf("after the edits: %+v", out)
	}
	f.observe("b")

	// An edit of a label is read, and changes nothing.
	f.write("settings", "4", map[string]string{"a": "b"})
	f.observe("a")
	f.pass(quiet)
	if out := f.observe("a", "settings"); out.Digests[settings].Sum != data("key", "4") {
		t.Error("a label changed the digest")
	}

	// Edits without an end are read after 30 seconds, and one that is needed now is read at once.
	from := f.clock.Now()
	for i := 0; len(f.reads) == 0; i++ {
		f.write("settings", fmt.Sprint(i), nil)
		if _, err := f.Observe(t.Context(), owner("a"), []workload.Reference{settings}, false); err != nil {
			t.Fatal(err)
		}
		f.pass(time.Second)
	}
	if took := f.clock.Since(from); took != longestChange+time.Second {
		t.Errorf("edits without an end were read after %v", took)
	}
	f.reads = nil
	f.write("settings", "5", nil)
	f.observe("a")
	if out := f.observeAll("a", []workload.Reference{settings}, true, "settings"); out.Digests[settings].Sum != data("key", "5") || len(out.Read) != 1 {
		t.Errorf("read at once: %+v", out)
	}

	// A clock that is set back delays it by as long as another edit, however far and often it is set back.
	for i, back := range []time.Duration{time.Second, quiet, time.Minute, time.Hour} {
		f.write("settings", fmt.Sprint("back-", i), nil)
		f.observe("a")
		f.pass(-back)
		if out := f.observe("a"); out.Again != quiet {
			t.Errorf("after the clock was set back by %v: %+v", back, out)
		}
		f.pass(quiet)
		f.observe("a", "settings")
	}
}

// All that an object refers to is read together, when the last of it has settled.
func TestReferencesSettleTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	more := workload.Reference{Kind: "ConfigMap", Name: "more"}
	refs := []workload.Reference{settings, more}
	f.write("settings", "1", nil)
	f.write("more", "1", nil)
	f.observeAll("a", refs, false, "more", "settings")
	f.write("settings", "2", nil)
	f.observeAll("a", refs, false)
	f.pass(quiet - 1)
	f.write("more", "2", nil)
	if out := f.observeAll("a", refs, false); out.Again != quiet || len(out.Digests) != 0 {
		t.Errorf("observed %+v", out)
	}
	f.pass(quiet)
	if out := f.observeAll("a", refs, false, "more", "settings"); len(out.Digests) != 2 {
		t.Errorf("observed %+v", out)
	}
}

func TestWhatIsMissing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, reads := range [][]string{{"settings"}, nil} { // Once, because the cache may be behind.
		if out := f.observe("a", reads...); len(out.Digests) != 0 || !strings.Contains(out.Note, `ConfigMap "settings" does not exist`) || out.Again != 0 {
			t.Errorf("without the ConfigMap: %+v", out)
		}
	}
	f.write("settings", "1", nil)
	f.observe("a")
	f.pass(quiet)
	if out := f.observe("a", "settings"); len(out.Digests) != 1 || out.Digests[settings].First || out.Note != "" {
		t.Errorf("with the ConfigMap: %+v", out)
	}
}

// A ConfigMap that was created just before the object is not in the cache yet.
func TestTheCacheIsBehind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Metadata = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	f.write("settings", "1", nil)
	if out := f.observe("a", "settings"); out.Digests[settings].Sum != data("key", "1") || out.Note != "" {
		t.Errorf("observed %+v", out)
	}
	if out := f.observe("a"); out.Again != quiet {
		t.Errorf("observed %+v", out)
	}
	f.Metadata = f.server
	if out := f.observe("a"); out.Digests[settings].Sum != data("key", "1") {
		t.Errorf("observed %+v", out)
	}
}

// What may not be read keeps its line, and a permission that is given later is no reason for a
// rollout: the data that is read then is the first one.
func TestWithoutPermission(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no permission"))
	const note = `ConfigMap "settings" may not be read by the operator`
	for _, what := range []string{"ConfigMap", "settings"} { // The watch, and the data.
		f := newFixture(t)
		f.write("settings", "1", nil)
		f.refused[what] = forbidden
		for range 3 {
			out, err := f.Observe(t.Context(), owner("a"), []workload.Reference{settings}, false)
			if err != nil || len(out.Digests) != 0 || !strings.Contains(out.Note, note) || out.Again != refusedFor || !slices.Equal(out.Unread, []workload.Reference{settings}) {
				t.Errorf("%s: %+v, %v", what, out, err)
			}
		}
		delete(f.refused, what)
		f.reads = nil
		if out := f.observe("a", "settings"); !out.Digests[settings].First || out.Note != "" {
			t.Errorf("%s: with the permission: %+v", what, out)
		}
		for _, value := range []string{"2", "1"} {
			f.write("settings", value, nil)
			f.observe("a")
			f.pass(quiet)
			if out := f.observe("a", "settings"); out.Digests[settings].First {
				t.Errorf("%s: other data: %+v", what, out)
			}
		}
	}
}

func TestWhileAWatchStarts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("settings", "1", nil)
	f.refused["ConfigMap"] = watches.ErrStarting
	if out := f.observe("a"); len(out.Digests) != 0 || out.Again != whileStarting || out.Note != "" {
		t.Errorf("observed %+v", out)
	}
	if out := f.observeAll("a", []workload.Reference{settings}, true, "settings"); len(out.Digests) != 1 {
		t.Errorf("read at once: %+v", out)
	}
}

// Of several references, one that fails does not hide the others.
func TestOtherErrorsAreReturned(t *testing.T) {
	t.Parallel()
	cut := errors.New("the connection was cut")
	for _, what := range []string{"Secret", "database"} {
		f := newFixture(t)
		f.write("settings", "1", nil)
		f.refused[what] = cut
		out, err := f.Observe(t.Context(), owner("a"), both, false)
		if !errors.Is(err, cut) || len(out.Digests) != 1 || !slices.Equal(out.Unread, []workload.Reference{database}) {
			t.Errorf("%s: %+v, %v", what, out, err)
		}
	}
}

func TestWhatIsHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("settings", "1", nil)
	f.observe("a", "settings")
	f.observe("b")
	f.write("settings", "2", nil)
	f.observe("a")
	if got := f.ownersOf("ConfigMap", "team", "settings"); len(got) != 2 {
		t.Errorf("the owners are %v", got)
	}
	if got := f.ownersOf("ConfigMap", "other", "settings"); len(got) != 0 {
		t.Errorf("the owners in another namespace are %v", got)
	}
	f.Forget(owner("a"))
	if _, err := f.Observe(t.Context(), owner("b"), nil, false); err != nil {
		t.Fatal(err)
	}
	f.Forget(owner("never"))
	if len(f.ownersOf("ConfigMap", "team", "settings"))+len(f.refs)+len(f.known)+len(f.changes) != 0 {
		t.Errorf("held are %v, %v and %v", f.refs, f.known, f.changes)
	}
	var none *Sources
	none.Forget(owner("a"))
}

var (
	settings = workload.Reference{Kind: "ConfigMap", Name: "settings"}
	database = workload.Reference{Kind: "Secret", Name: "database"}
	both     = []workload.Reference{settings, database}
)

func data(values ...string) [32]byte {
	out := map[string][]byte{}
	for i := 0; i < len(values); i += 2 {
		out[values[i]] = []byte(values[i+1])
	}
	return digestOf(out)
}

func digest(sum [32]byte) Digest { return Digest{Sum: sum} }

func TestAnnotation(t *testing.T) {
	t.Parallel()
	one := Digests{settings: digest(data("a", "1")), database: digest(data("b", "2"))}
	other := Digests{settings: digest(data("a", "2")), database: digest(data("b", "2"))}
	begun := Digests{settings: {Sum: data("a", "1"), First: true}, database: one[database]}
	first := one.Annotation("uid", both, "")
	lines := strings.Split(first, "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "ConfigMap/settings ") || !strings.HasPrefix(lines[1], "Secret/database ") || len(first) != len("ConfigMap/settings Secret/database ")+2*16+1 {
		t.Fatalf("the annotation is %q", first)
	}
	missing, denied := "ConfigMap/settings\n"+lines[1], "ConfigMap/settings ?\n"+lines[1]
	refused := []workload.Reference{settings}
	for _, test := range []struct {
		name      string
		got, want string
	}{
		{"again", one.Annotation("uid", both, first), first},
		{"other data", other.Annotation("uid", both, first), other.Annotation("uid", both, "")},
		{"other data, held", other.Missing(first).Annotation("uid", both, first), first},
		{"deleted", Digests{database: one[database]}.Annotation("uid", both, first), first},
		{"deleted, and the other one has other data", Digests{settings: other[settings]}.Annotation("uid", both, first), strings.Split(other.Annotation("uid", both, ""), "\n")[0] + "\n" + lines[1]},
		{"never there", Digests{database: one[database]}.Annotation("uid", both, ""), missing},
		{"created", one.Annotation("uid", both, missing), first},
		{"created, held", one.Missing(missing).Annotation("uid", both, missing), missing},
		{"a new reference, held", one.Missing(lines[1]).Annotation("uid", both, lines[1]), first},
		{"a reference less, held", other.Missing(first).Annotation("uid", both[:1], first), lines[0]},
		{"no references", one.Annotation("uid", nil, first), ""},
		{"an annotation of another client", one.Annotation("uid", both, "a\n\n b c\nConfigMap/settings x"), first},
		{"not readable at the creation", Digests{database: one[database]}.Anew("uid", both, "", refused), denied},
		{"not readable any more", Digests{database: one[database]}.Anew("uid", both, first, refused), first},
		{"not there at the creation", Digests{database: one[database]}.Anew("uid", both, "", nil), missing},
		{"readable since then", begun.Annotation("uid", both, denied), denied},
		{"readable since then, and changed", one.Annotation("uid", both, denied), first},
		{"readable since then, and another image", begun.Anew("uid", both, denied, nil), first},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.got, test.want)
		}
	}
	if other.Annotation("uid", both, "") == first || one.Annotation("another", both, "") == first {
		t.Error("other data, or another owner, has the same hash")
	}
	if got := Changed(first, other.Annotation("uid", both, first)); !slices.Equal(got, []string{"ConfigMap/settings"}) {
		t.Errorf("changed are %q", got)
	}
}

// Two different maps never have the same encoding.
func TestDigests(t *testing.T) {
	t.Parallel()
	seen := map[[32]byte]string{}
	for _, values := range [][]string{{}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab", ""}, {"a", "", "b", ""}, {"a", "b", "c", "d"}, {"a", "bc", "d", ""}, {"a", "b\x00", "c", "d"}} {
		digest := data(values...)
		if before, found := seen[digest]; found {
			t.Errorf("%q has the digest of %s", values, before)
		}
		seen[digest] = strings.Join(values, ",")
	}
	if data("a", "1", "b", "2") != data("b", "2", "a", "1") {
		t.Error("the digest depends on the order")
	}
}
