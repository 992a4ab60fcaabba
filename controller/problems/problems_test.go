// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/randfill"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/test/golden"
)

// read is what is read of a workload at one time.
type read struct {
	Now        metav1.Time        `json:"now"`
	Deployment *appsv1.Deployment `json:"deployment"`
	DaemonSet  *appsv1.DaemonSet  `json:"daemonSet"`
	Pods       []corev1.Pod       `json:"pods"`
}

// diagnosed is what a golden file has.
type diagnosed struct {
	NeedsIntervention bool              `json:"needsIntervention"`
	Problems          []modelv1.Problem `json:"problems"`
}

func (r *read) result() Result {
	var workload Workload
	if r.DaemonSet != nil {
		workload = OfDaemonSet(r.DaemonSet)
	} else {
		workload = OfDeployment(r.Deployment)
	}
	found := workload.newTally()
	for i := range r.Pods {
		found.add(ofPod(&r.Pods[i], r.Now.Time))
	}
	return found.result(r.Now.Time)
}

// Each testdata/NAME.yaml has pods as kubelet, the scheduler and the API server write them;
// NAME.golden.yaml has the problems. "go test ./controller/... -update" rewrites the latter.
func TestResult(t *testing.T) {
	golden.Run(t, func(r *read) ([]any, error) {
		result := r.result()
		return []any{diagnosed{result.NeedsIntervention, result.Problems}}, nil
	})
}

// A problem whose message differs only in what varies has the message of the previous read.
func TestMergePrevious(t *testing.T) {
	t.Parallel()
	const message = "exit code 1: 03:04:05.123 read udp 10.244.0.5:51423->10.96.0.10:53: timeout of 6a1e2c55-0000-4000-8000-000000000000"
	for next, same := range map[string]bool{
		"exit code 1: 04:04:05.124 read udp 10.244.0.5:51424->10.96.0.10:53: timeout of 6a1e2c55-0000-4000-8000-000000000001": true,
		"exit code 2: 03:04:05.123 read udp 10.244.0.5:51423->10.96.0.10:53: timeout of 6a1e2c55-0000-4000-8000-000000000000": false,
		"exit code 1: 03:04:05.123 read udp 10.244.0.5:51423->10.96.0.10:53: refused of 6a1e2c55-0000-4000-8000-000000000000": false,
	} {
		since, now := metav1.Unix(1e9, 0), metav1.Unix(1e9+9, 0)
		r := Result{Problems: []modelv1.Problem{{Reason: "CrashLoopBackOff", Message: next, Since: now}}}
		r.mergePrevious([]modelv1.Problem{{Reason: "CrashLoopBackOff", Message: message, Since: since}})
		if got := r.Problems[0]; (got.Message == message) != same || !got.Since.Equal(&since) {
			t.Errorf("%q: %+v", next, got)
		}
	}
}

// Whatever clients write into the status of pods, the schema accepts the problems.
func TestAnyPod(t *testing.T) {
	t.Parallel()
	fill := randfill.NewWithSeed(1).NilChance(.2).NumElements(0, 4).MaxDepth(12)
	for range 60 {
		r := read{Deployment: &appsv1.Deployment{}, Pods: make([]corev1.Pod, 20)}
		for i := range r.Pods {
			fill.Fill(&r.Pods[i].Status)
			fill.Fill(&r.Pods[i].Spec.Containers)
			r.Pods[i].Spec.NodeName = "node"
		}
		r.Now = metav1.Now()
		result := r.result()
		if len(result.Problems) > maxProblems {
			t.Fatalf("%d problems", len(result.Problems))
		}
		for _, p := range result.Problems {
			if !word.MatchString(p.Reason) || len(p.Message) > maxMessage || len(p.Container) > maxContainer || p.Count < 0 || !utf8.ValidString(p.Message) {
				t.Errorf("the API server would refuse %+v", p)
			}
			for _, letter := range p.Message {
				if unicode.IsControl(letter) {
					t.Errorf("%q has a control character", p.Message)
				}
			}
			if _, err := json.Marshal(p); err != nil {
				t.Error(err)
			}
		}
	}
}
