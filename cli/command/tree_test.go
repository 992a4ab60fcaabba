// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/cli/tree"
)

func TestTreeOfADaemonThatIsNotAvailable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	since := metav1.NewTime(now.Add(-time.Minute))
	daemon := &mydomainv1beta1.Genericdaemon{}
	daemon.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", Message: "1 of 3 pods are available", LastTransitionTime: since,
	}}
	daemon.Status.Problems = []modelv1.Problem{{Container: "logs", Reason: "ImagePullBackOff", Message: "not found", Count: 2, Since: since}}
	var out strings.Builder
	snapshot := tree.Snapshot{Name: "genericdaemon/logs", Object: daemon}
	if err := snapshot.Tree(now).Write(&out); err != nil {
		t.Fatal(err)
	}
	want := `genericdaemon/logs  not ready
├── Ready=False  Progressing (60s): 1 of 3 pods are available
└── problem: ImagePullBackOff of container logs in 2 pods for 60s: not found
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
