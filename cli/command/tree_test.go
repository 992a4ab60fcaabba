// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/cli/command"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

func TestTreeOfADaemonThatIsNotAvailable(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(now.Add(-time.Minute))
	daemon := &mydomainv1beta1.Genericdaemon{ObjectMeta: metav1.ObjectMeta{Name: "logs", Namespace: "default"}}
	daemon.Status.Conditions = []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionFalse, Reason: "Progressing", Message: "1 of 3 pods are available", LastTransitionTime: since,
	}}
	daemon.Status.Problems = []modelv1.Problem{{Container: "logs", Reason: "ImagePullBackOff", Message: "not found", Count: 2, Since: since}}
	scheme, err := testenv.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(daemon).
		WithIndex(&corev1.Event{}, "involvedObject.name", func(client.Object) []string { return nil }).Build()
	var out, errOut bytes.Buffer
	code := command.Run(command.Env{
		IOStreams: genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, Clock: testclock.NewFakeClock(now), Client: c,
	}, []string{"status", "genericdaemon/logs", "-n", "default"})
	want := `Genericdaemon/logs  not ready
├── Ready=False  Progressing (60s): 1 of 3 pods are available
└── problem: ImagePullBackOff of container logs in 2 pods for 60s: not found
`
	if diff := cmp.Diff(want, out.String()); diff != "" || code != 0 {
		t.Errorf("%d %s (-want +got):\n%s", code, &errOut, diff)
	}
}
