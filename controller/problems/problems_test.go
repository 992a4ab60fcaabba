// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// look is what is seen of a workload at one time.
type look struct {
	Now        metav1.Time        `json:"now"`
	Deployment *appsv1.Deployment `json:"deployment"`
	DaemonSet  *appsv1.DaemonSet  `json:"daemonSet"`
	Pods       []corev1.Pod       `json:"pods"`
}

// result is what a golden file has.
type result struct {
	Human    bool              `json:"needsHuman"`
	Problems []modelv1.Problem `json:"problems"`
}

func (l *look) workload() Workload {
	if l.DaemonSet != nil {
		return OfDaemonSet(l.DaemonSet)
	}
	return OfDeployment(l.Deployment)
}

func (l *look) result() result {
	found, human := Of(l.workload(), l.Pods, l.Now.Time)
	return result{human, found}
}

// Each testdata/NAME.yaml has pods as kubelet, the scheduler and the API server write them;
// NAME.golden.yaml has the problems. "go test ./controller/... -update" rewrites the latter.
func TestOf(t *testing.T) {
	golden.Run(t, func(l *look) ([]any, error) { return []any{l.result()}, nil })
}

// looks returns all cases of testdata.
func looks(t *testing.T) map[string]*look {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*look{}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden.yaml") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out[file] = &look{}
		if err := yaml.Unmarshal(data, out[file]); err != nil {
			t.Fatal(file, err)
		}
	}
	if len(out) < 20 {
		t.Fatalf("testdata has only %d cases", len(out))
	}
	return out
}

func eachPod(l *look, change func(*corev1.Pod)) {
	for i := range l.Pods {
		change(&l.Pods[i])
	}
}

func TestTheOrderOfPodsIsOfNoImportance(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for file, l := range looks(t) {
		want := l.result()
		for range 20 {
			random.Shuffle(len(l.Pods), func(i, j int) { l.Pods[i], l.Pods[j] = l.Pods[j], l.Pods[i] })
			if diff := cmp.Diff(want, l.result()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		}
	}
}

// A container that is restarted once more, and is then in another phase of the same loop, has
// the same problem.
func TestARestartAloneChangesNothing(t *testing.T) {
	for file, l := range looks(t) {
		want := l.result()
		tried := 0
		for _, phase := range []corev1.ContainerState{
			{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off 2m40s restarting failed container=server pod=a_b(c)"}},
			{Running: &corev1.ContainerStateRunning{StartedAt: l.Now}},
			{Terminated: &corev1.ContainerStateTerminated{}},
		} {
			eachPod(l, func(pod *corev1.Pod) { tried += restart(pod.Status.ContainerStatuses, phase, l.Now) })
			eachPod(l, func(pod *corev1.Pod) { tried += restart(pod.Status.InitContainerStatuses, phase, l.Now) })
			if diff := cmp.Diff(want, l.result()); diff != "" {
				t.Errorf("%s in phase %+v (-want +got):\n%s", file, phase, diff)
			}
		}
		if strings.Contains(file, "crash-loop.yaml") && tried == 0 {
			t.Error("no container is restarted")
		}
	}
}

// restart restarts the containers whose number of restarts stays in the same step.
func restart(statuses []corev1.ContainerStatus, phase corev1.ContainerState, now metav1.Time) (restarted int) {
	for i := range statuses {
		s := &statuses[i]
		last := s.LastTerminationState.Terminated
		if last == nil || s.RestartCount == math.MaxInt32 || atLeast(s.RestartCount) != atLeast(s.RestartCount+1) {
			continue
		}
		restarted++
		s.RestartCount++
		last.StartedAt, last.FinishedAt = now, now
		s.State = phase
		if phase.Terminated != nil {
			s.State.Terminated = last.DeepCopy()
		}
	}
	return restarted
}

// What a look has seen is the same at the next one, but for what the time itself changes.
func TestTimeAloneChangesNothing(t *testing.T) {
	for file, l := range looks(t) {
		if strings.Contains(file, "briefly") || strings.Contains(file, "crash-loop.yaml") || strings.Contains(file, "terminating") {
			continue
		}
		want := l.result()
		for _, later := range []time.Duration{15 * time.Second, time.Minute, 5 * time.Minute} {
			l.Now = metav1.NewTime(l.Now.Add(later))
			if diff := cmp.Diff(want, l.result()); diff != "" {
				t.Errorf("%s, %s later (-want +got):\n%s", file, later, diff)
			}
		}
	}
}

// check checks what is true of the problems of all pods.
func check(t *testing.T, name string, now time.Time, found []modelv1.Problem) {
	t.Helper()
	if len(found) > maxProblems {
		t.Errorf("%s: %d problems", name, len(found))
	}
	for _, p := range found {
		valid := utf8.ValidString(p.Message) && utf8.ValidString(p.Container) && strings.IndexFunc(p.Message+p.Container, unicode.IsControl) < 0
		if !valid || len(p.Message) > maxMessage || len(p.Container) > maxContainer || !word.MatchString(p.Reason) || len(p.Reason) > maxReason {
			t.Errorf("%s: a problem is not within the bounds: %q", name, p)
		}
		if p.Since.After(now) || p.Count < 0 {
			t.Errorf("%s: since %s, count %d, at %s", name, p.Since, p.Count, now)
		}
		if _, err := json.Marshal(p); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Pods with any content whatever, of which some are the workload's.
func TestBounds(t *testing.T) {
	for seed := range int64(60) {
		fill := randfill.NewWithSeed(seed).NilChance(0.3).NumElements(1, 4).Funcs(
			func(*metav1.FieldsV1, randfill.Continue) {},
			func(s *string, c randfill.Continue) {
				*s = strings.Repeat(c.String(20), 1+c.Intn(3)*c.Intn(300))
			},
			func(at *metav1.Time, c randfill.Continue) { *at = metav1.NewTime(time.Unix(c.Int63n(1<<40)-1<<39, 0)) },
		)
		l := look{Deployment: &appsv1.Deployment{}, Now: metav1.NewTime(time.Unix(1<<30, 0))}
		fill.Fill(&l.Pods)
		eachPod(&l, func(pod *corev1.Pod) {
			pod.DeletionTimestamp = nil
			own(pod)
			if seed%2 == 0 {
				pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "node"
			}
		})
		check(t, fmt.Sprint("seed ", seed), l.Now.Time, l.result().Problems)
	}
	for file, l := range looks(t) {
		check(t, file, l.Now.Time, l.result().Problems)
		l.Now = metav1.NewTime(time.Unix(0, 0))
		check(t, file+" long ago", l.Now.Time, l.result().Problems)
	}
}

// own makes a pod one of the Deployment without a name.
func own(pod *corev1.Pod) {
	pod.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "hash"}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "-hash", Controller: new(true)}}
}

// Clients who may write the status of pods may write any number of container statuses.
func TestManyContainers(t *testing.T) {
	l := look{Deployment: &appsv1.Deployment{}, Pods: make([]corev1.Pod, 1)}
	own(&l.Pods[0])
	l.Pods[0].Spec.NodeName = "node"
	for i := range 10_000 {
		l.Pods[0].Status.ContainerStatuses = append(l.Pods[0].Status.ContainerStatuses, corev1.ContainerStatus{
			Name: fmt.Sprint("c", i), State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: fmt.Sprint(i)}},
		})
	}
	if found := ofPod(&l.Pods[0], time.Now()); len(found) > maxContainers {
		t.Errorf("%d container statuses are read", len(found))
	}
	check(t, "10,000 containers", time.Now(), l.result().Problems)
}

func TestAtLeast(t *testing.T) {
	for n, want := range map[int32]int32{-1: 0, 0: 0, 1: 1, 2: 2, 4: 2, 5: 5, 9: 5, 10: 10, 49: 20, 50: 50, 199: 100, math.MaxInt32: 2_000_000_000} {
		if got := atLeast(n); got != want {
			t.Errorf("atLeast(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestClean(t *testing.T) {
	for message, want := range map[string]string{
		"a\nb\tc\x00d  e": "a b c d e",
		"back-off 2m40s restarting failed container=x pod=y_z(0b5c)":                                     "back-off restarting failed container=x",
		"E0102 03:04:05.678901       1 main.go:12] boom":                                                 "main.go:12] boom",
		"[2026/01/02 03:04:05] boom":                                                                     "boom",
		"2026-01-02T03:04:05.678+02:00 boom at 03:04:05":                                                 "boom at",
		"image@sha256:" + strings.Repeat("ab", 32) + " in " + strings.Repeat("cd", 32):                   "image@sha256:" + strings.Repeat("ab", 32) + " in <id>",
		"sha256 is " + strings.Repeat("ab", 32) + ", spec.model.sha256 says " + strings.Repeat("cd", 32): "sha256 is " + strings.Repeat("ab", 32) + ", spec.model.sha256 says " + strings.Repeat("cd", 32),
		"pod server-7c5d-x of 6a1e2c55-0000-4000-8000-000000000001":                                      "pod <pod> of <uid>",
		"panic at 0xc000123456, 0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had taint {a: b}": "panic at 0x.., 0/5 nodes are available: 3 Insufficient cpu, 2 node(s) had taint {a: b}",
	} {
		if got := clean(message, "server-7c5d-x"); got != want {
			t.Errorf("clean(%q) = %q, want %q", message, got, want)
		}
	}
}
