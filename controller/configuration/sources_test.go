// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package configuration

import (
	"context"
	"errors"
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

	"github.com/modelbox-operator/modelbox-operator/kinds/workload"
)

// fixture is a Sources with an API server, and counts what is read and watched.
type fixture struct {
	*Sources
	t       *testing.T
	server  client.WithWatch
	clock   *clocktesting.FakePassiveClock
	reads   []string
	watches []string
	// refused are the kinds that may not be watched, and the objects whose data may not be read.
	refused map[string]error
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)), refused: map[string]error{}}
	f.server = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	live := interceptor.NewClient(f.server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			f.reads = append(f.reads, key.Name)
			if err := f.refused[key.Name]; err != nil {
				return err
			}
			return c.Get(ctx, key, obj, opts...)
		},
	})
	f.Sources = &Sources{Metadata: f.server, Live: live, Clock: f.clock, Watch: func(_ context.Context, kind string) error {
		f.watches = append(f.watches, kind)
		return f.refused[kind]
	}}
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

// observe observes the settings for an owner, and compares the reads since the last call.
func (f *fixture) observe(owner string, reads ...string) Observed {
	f.t.Helper()
	out, err := f.Observe(f.t.Context(), types.NamespacedName{Namespace: "team", Name: owner}, []workload.Reference{settings})
	if err != nil {
		f.t.Fatal(err)
	}
	if !slices.Equal(f.reads, reads) {
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
	if f.observe("a"); first.Again != 0 || first.Note != "" || first.Digests[settings] != data("key", "1") {
		t.Errorf("observed %+v", first)
	}
	f.observe("b")
	if !slices.Equal(f.watches, []string{"ConfigMap"}) {
		t.Errorf("watches %q, want one", f.watches)
	}

	// A burst of edits: nothing is read for two seconds after the first one, whatever triggers a reconcile.
	for i, value := range []string{"2", "3", "4"} {
		f.write("settings", value, nil)
		if out := f.observe("a"); out.Digests[settings] != first.Digests[settings] || out.Again != burst-time.Duration(i)*500*time.Millisecond {
			t.Errorf("edit %d: again after %v, changed: %t", i, out.Again, out.Digests[settings] != first.Digests[settings])
		}
		f.clock.SetTime(f.clock.Now().Add(500 * time.Millisecond))
	}
	f.clock.SetTime(f.clock.Now().Add(burst))
	if out := f.observe("a", "settings"); out.Digests[settings] != data("key", "4") || out.Again != 0 {
		t.Errorf("after the burst: %+v", out)
	}
	f.observe("b")

	// An edit of a label is read, and changes nothing.
	f.write("settings", "4", map[string]string{"a": "b"})
	f.observe("a")
	f.clock.SetTime(f.clock.Now().Add(burst))
	if out := f.observe("a", "settings"); out.Digests[settings] != data("key", "4") {
		t.Error("a label changed the digest")
	}

	// A clock that is set back does not delay it.
	f.write("settings", "5", nil)
	f.observe("a")
	f.clock.SetTime(f.clock.Now().Add(-time.Hour))
	f.observe("a", "settings")
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
	if out := f.observe("a", "settings"); len(out.Digests) != 1 || out.Note != "" {
		t.Errorf("with the ConfigMap: %+v", out)
	}
}

// A ConfigMap that was created just before the object is not in the cache yet.
func TestTheCacheIsBehind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Metadata = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build()
	f.write("settings", "1", nil)
	if out := f.observe("a", "settings"); out.Digests[settings] != data("key", "1") || out.Note != "" {
		t.Errorf("observed %+v", out)
	}
	f.observe("a")
	f.Metadata = f.server
	if out := f.observe("a"); out.Digests[settings] != data("key", "1") {
		t.Errorf("observed %+v", out)
	}
}

func TestWithoutPermission(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no permission"))
	const note = `ConfigMap "settings" may not be read by the operator`
	for _, what := range []string{"ConfigMap", "settings"} { // The watch, and the data.
		f := newFixture(t)
		f.write("settings", "1", nil)
		f.refused[what] = forbidden
		for range 3 {
			out, err := f.Observe(t.Context(), types.NamespacedName{Namespace: "team", Name: "a"}, []workload.Reference{settings})
			if err != nil || len(out.Digests) != 0 || !strings.Contains(out.Note, note) || out.Again != refusedFor {
				t.Errorf("%s: %+v, %v", what, out, err)
			}
		}
		if len(f.watches) != 1 {
			t.Errorf("%s: %d attempts to watch, want 1", what, len(f.watches))
		}
		delete(f.refused, what)
		f.clock.SetTime(f.clock.Now().Add(refusedFor))
		f.reads = nil
		if out := f.observe("a", "settings"); len(out.Digests) != 1 || out.Note != "" {
			t.Errorf("%s: with the permission: %+v", what, out)
		}
	}
}

func TestOtherErrorsAreReturned(t *testing.T) {
	t.Parallel()
	cut := errors.New("the connection was cut")
	for _, what := range []string{"ConfigMap", "settings"} {
		f := newFixture(t)
		f.write("settings", "1", nil)
		f.refused[what] = cut
		if _, err := f.Observe(t.Context(), types.NamespacedName{Namespace: "team", Name: "a"}, []workload.Reference{settings}); !errors.Is(err, cut) {
			t.Errorf("%s: %v", what, err)
		}
		delete(f.refused, what)
		f.reads = nil
		f.observe("a", "settings")
	}
}

func TestWhatIsHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.write("settings", "1", nil)
	owner := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "team", Name: name} }
	f.observe("a", "settings")
	f.observe("b")
	if got := f.ownersOf("ConfigMap", "team", "settings"); len(got) != 2 {
		t.Errorf("the owners are %v", got)
	}
	if got := f.ownersOf("ConfigMap", "other", "settings"); len(got) != 0 {
		t.Errorf("the owners in another namespace are %v", got)
	}
	f.Forget(owner("a"))
	if _, err := f.Observe(t.Context(), owner("b"), nil); err != nil {
		t.Fatal(err)
	}
	f.Forget(owner("never"))
	if len(f.ownersOf("ConfigMap", "team", "settings"))+len(f.refs)+len(f.known) != 0 {
		t.Errorf("held are %v and %v", f.refs, f.known)
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

func TestAnnotation(t *testing.T) {
	t.Parallel()
	one := Digests{settings: data("a", "1"), database: data("b", "2")}
	other := Digests{settings: data("a", "2"), database: data("b", "2")}
	first := one.Annotation("uid", both, "", false)
	lines := strings.Split(first, "\n")
	if len(lines) != 2 || !strings.HasPrefix(lines[0], "ConfigMap/settings ") || !strings.HasPrefix(lines[1], "Secret/database ") || len(first) != len("ConfigMap/settings Secret/database ")+2*16+1 {
		t.Fatalf("the annotation is %q", first)
	}
	missing := "ConfigMap/settings\n" + lines[1]
	for _, test := range []struct {
		name      string
		got, want string
	}{
		{"again", one.Annotation("uid", both, first, false), first},
		{"other data", other.Annotation("uid", both, first, false), other.Annotation("uid", both, "", false)},
		{"other data, held", other.Annotation("uid", both, first, true), first},
		{"deleted", Digests{database: one[database]}.Annotation("uid", both, first, false), first},
		{"deleted, and the other one has other data", Digests{settings: other[settings]}.Annotation("uid", both, first, false), strings.Split(other.Annotation("uid", both, "", false), "\n")[0] + "\n" + lines[1]},
		{"never there", Digests{database: one[database]}.Annotation("uid", both, "", false), missing},
		{"created", one.Annotation("uid", both, missing, false), first},
		{"created, held", one.Annotation("uid", both, missing, true), missing},
		{"a new reference, held", one.Annotation("uid", both, lines[1], true), first},
		{"a reference less, held", other.Annotation("uid", both[:1], first, true), lines[0]},
		{"no references", one.Annotation("uid", nil, first, false), ""},
		{"an annotation of another client", one.Annotation("uid", both, "a\n\n b c\nConfigMap/settings x", false), first},
	} {
		if test.got != test.want {
			t.Errorf("%s: %q, want %q", test.name, test.got, test.want)
		}
	}
	if other.Annotation("uid", both, "", false) == first || one.Annotation("another", both, "", false) == first {
		t.Error("other data, or another owner, has the same hash")
	}
	if got := Changed(first, other.Annotation("uid", both, first, false)); !slices.Equal(got, []string{"ConfigMap/settings"}) {
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
