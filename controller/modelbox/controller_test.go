// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
)

// Whatever pods say: it is the status of the models, or the status is empty.
func TestWhatPodsSayOfTheirModels(t *testing.T) {
	t.Parallel()
	const uri, folder = "https://models.example.com/a.gguf", "s3://team-models/lora/"
	sum, other := strings.Repeat("0A", 32), strings.Repeat("1b", 32)
	all := models.Of(&modelv1.ModelBoxSpec{
		Model: &modelv1.Model{URI: uri, SHA256: sum},
		Models: []modelv1.NamedModel{
			{Name: "image", Model: modelv1.Model{URI: "oci://a@sha256:" + other}}, {Name: "lora", Model: modelv1.Model{URI: folder, MountPath: "/lora"}},
		},
	})
	fetch := models.PodOf(all, models.Fetcher{Image: "controller:1"}, corev1.ResourceRequirements{}).Fetch
	said := func(model, lora string) string { return `{"models":[{` + model + `},{"name":"lora"` + lora + `}]}` }
	digest := func(of string, bytes any) string { return fmt.Sprintf(`"digest":"sha256:%s","bytes":%v`, of, bytes) }
	right := said(digest(strings.ToLower(sum), 7), ","+digest(other, 1<<53-1))
	for name, tc := range map[string]struct {
		message string
		change  func(*corev1.Pod)
		empty   bool
	}{
		"right":                       {message: right},
		"with what a newer one adds":  {message: strings.Replace(right, `"bytes":7`, `"bytes":7,"files":1`, 1)},
		"nothing":                     {message: "", empty: true},
		"another word":                {message: "[Failed] x", empty: true},
		"cut":                         {message: right[:len(right)-1], empty: true},
		"two":                         {message: right + right, empty: true},
		"too long":                    {message: right + strings.Repeat(" ", 4096), empty: true},
		"one model too few":           {message: `{"models":[{` + digest(strings.ToLower(sum), 7) + `}]}`, empty: true},
		"another model":               {message: strings.Replace(right, `"lora"`, `"lore"`, 1), empty: true},
		"another hash than of spec":   {message: said(digest(other, 7), ","+digest(other, 7)), empty: true},
		"no hash":                     {message: said(digest("x", 7), ","+digest(other, 7)), empty: true},
		"a hash in capital letters":   {message: said(digest(strings.ToLower(sum), 7), ","+digest(sum, 7)), empty: true},
		"a negative number":           {message: said(digest(strings.ToLower(sum), -7), ","+digest(other, 7)), empty: true},
		"a number beyond the schema":  {message: said(digest(strings.ToLower(sum), 7), ","+digest(other, 1<<53)), empty: true},
		"a number beyond an int64":    {message: said(digest(strings.ToLower(sum), "1e30"), ","+digest(other, 7)), empty: true},
		"bytes of an unknown model":   {message: said(digest(strings.ToLower(sum), 7), `,"bytes":7`), empty: true},
		"a text of another type":      {message: `{"models":"x"}`, empty: true},
		"null":                        {message: `null`, empty: true},
		"deep":                        {message: strings.Repeat("[", 4096), empty: true},
		"of another image":            {message: right, change: func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Image = "evil:1" }, empty: true},
		"of another command":          {message: right, change: func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Command = []string{"sh"} }, empty: true},
		"of other arguments":          {message: right, change: func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Args = nil }, empty: true},
		"of another container":        {message: right, change: func(pod *corev1.Pod) { pod.Status.InitContainerStatuses[0].Name = "warm" }, empty: true},
		"of a container that is none": {message: right, change: func(pod *corev1.Pod) { pod.Spec.InitContainers = nil }, empty: true},
		"of a failure":                {message: right, change: func(pod *corev1.Pod) { pod.Status.InitContainerStatuses[0].State.Terminated.ExitCode = 1 }, empty: true},
		"of a pod that is not ready":  {message: right, change: notReady, empty: true},
		"of a pod that is deleted":    {message: right, change: deleted, empty: true},
		"of one that runs":            {message: right, change: func(pod *corev1.Pod) { pod.Status.InitContainerStatuses[0].State.Terminated = nil }, empty: true},
	} {
		pod := servingPod(fetch, tc.message)
		if tc.change != nil {
			tc.change(&pod)
		}
		want, wantLora := modelv1.ModelStatus{URI: uri, Digest: "sha256:" + strings.ToLower(sum), Bytes: 7}, modelv1.ModelStatus{URI: folder, Digest: "sha256:" + other, Bytes: 1<<53 - 1}
		if tc.empty {
			want, wantLora = modelv1.ModelStatus{}, modelv1.ModelStatus{}
		}
		model, named, differ := fetchedBy(all, fetch, []corev1.Pod{{}, pod, pod})
		if differ != "" {
			t.Errorf("%s differs: %s", name, differ)
		}
		if diff := cmp.Diff(&want, model) + cmp.Diff([]modelv1.NamedModelStatus{{Name: "lora", ModelStatus: wantLora}}, named); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A model that an earlier release has left in a claim has no digest, and still a URI.
func TestAModelWhoseDigestIsNotKnown(t *testing.T) {
	t.Parallel()
	all := models.Of(&modelv1.ModelBoxSpec{ModelFileURL: "hf://org/name@" + strings.Repeat("0a", 20)})
	fetch := &corev1.Container{Name: models.Container}
	known := fmt.Sprintf(`{"models":[{"digest":"sha256:%s","bytes":7}]}`, strings.Repeat("0a", 32))
	model, named, differ := fetchedBy(all, fetch, []corev1.Pod{servingPod(fetch, `{"models":[{}]}`), servingPod(fetch, known)})
	if diff := cmp.Diff(&modelv1.ModelStatus{URI: all[0].URI}, model); diff != "" || named != nil || differ != "" {
		t.Error(diff, named, differ)
	}
}

// servingPod returns a ready pod whose container that fetches has ended with a message.
func servingPod(fetch *corev1.Container, message string) corev1.Pod {
	return corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{*fetch.DeepCopy()}},
		Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			InitContainerStatuses: []corev1.ContainerStatus{{
				Name: fetch.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}},
			}},
		},
	}
}

func notReady(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) }

func TestPodsThatServeOtherBytes(t *testing.T) {
	t.Parallel()
	all := models.Of(&modelv1.ModelBoxSpec{
		Model:  &modelv1.Model{URI: "https://models.example.com/a.gguf"},
		Models: []modelv1.NamedModel{{Name: "lora", Model: modelv1.Model{URI: "s3://team-models/lora/", MountPath: "/lora"}}},
	})
	fetch := models.PodOf(all, models.Fetcher{Image: "controller:1"}, corev1.ResourceRequirements{}).Fetch
	digest := func(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }
	pod := func(model, lora string, change ...func(*corev1.Pod)) corev1.Pod {
		out := servingPod(fetch, fmt.Sprintf(`{"models":[{"digest":%q},{"name":"lora","digest":%q}]}`, digest(model), digest(lora)))
		for _, change := range change {
			change(&out)
		}
		return out
	}
	forged := func(pod *corev1.Pod) { pod.Spec.InitContainers[0].Image = "evil:1" }
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"none":            {nil, ""},
		"one":             {[]corev1.Pod{pod("1", "2")}, ""},
		"equal ones":      {[]corev1.Pod{pod("1", "2"), pod("1", "2"), pod("1", "2")}, ""},
		"the first":       {[]corev1.Pod{pod("3", "2"), pod("1", "2"), pod("1", "2")}, "spec.model is " + digest("1") + " in 2 of 3 and " + digest("3") + " in 1 of 3"},
		"one with a name": {[]corev1.Pod{pod("1", "2"), pod("1", "3")}, `spec.models "lora" is ` + digest("2") + " in 1 of 2 and " + digest("3") + " in 1 of 2"},
		"both": {[]corev1.Pod{pod("1", "2"), pod("2", "1")}, "spec.model is " + digest("1") + " in 1 of 2 and " + digest("2") + " in 1 of 2; " +
			`spec.models "lora" is ` + digest("1") + " in 1 of 2 and " + digest("2") + " in 1 of 2"},
		"one that does not serve yet":  {[]corev1.Pod{pod("1", "2"), pod("3", "2", notReady)}, ""},
		"one that is being deleted":    {[]corev1.Pod{pod("1", "2"), pod("3", "2", deleted)}, ""},
		"one that says it for another": {[]corev1.Pod{pod("1", "2"), pod("3", "2", forged)}, ""},
		"one that says no digest":      {[]corev1.Pod{pod("1", "2"), pod("evil", "2")}, ""},
	} {
		if _, _, differ := fetchedBy(all, fetch, tc.pods); differ != tc.want {
			t.Errorf("%s: %q, want %q", name, differ, tc.want)
		}
	}
}

// Pods are read again only when another number of them is ready, and a model can change.
func TestWhenPodsAreReadAgain(t *testing.T) {
	t.Parallel()
	sum := strings.Repeat("0a", 32)
	https := modelv1.Model{URI: "https://models.example.com/a.gguf"}
	pinned, folder, hub := https, modelv1.Model{URI: "s3://team-models/lora/"}, modelv1.Model{URI: "hf://org/name@" + sum[:40]}
	pinned.SHA256 = sum
	image, claim := modelv1.Model{URI: "oci://a@sha256:" + sum}, modelv1.Model{URI: "pvc://models"}
	for name, tc := range map[string]struct {
		model         modelv1.Model
		ready         int32
		again, absent bool
	}{
		"one of three restarts":       {model: https, ready: 2, again: true},
		"nothing changes":             {model: https, ready: 3},
		"one is left":                 {model: https, ready: 1, again: true, absent: true},
		"none is left":                {model: https, ready: 0, again: true, absent: true},
		"a folder":                    {model: folder, ready: 2, again: true},
		"a hash":                      {model: pinned, ready: 2},
		"a commit":                    {model: hub, ready: 2},
		"an image, beside the commit": {model: image, ready: 2},
		"a claim, beside the commit":  {model: claim, ready: 2},
	} {
		box := &modelv1.ModelBox{Spec: modelv1.ModelBoxSpec{Model: &tc.model, Models: []modelv1.NamedModel{{Name: "lora", Model: hub}}}}
		modelbox.Default(box)
		box.Status.ReadyReplicas, box.Status.Fetcher = 3, &modelv1.FetcherStatus{Revision: "7"}
		status.SetModelDiffers(&box.Status.Conditions, "x", 1, metav1.Now())
		s := workload.NewState(modelbox.Workload(box, models.Fetcher{}), nil, &box.Status.WorkloadStatus, nil)
		s.Pods.Live.(*appsv1.Deployment).Status.ReadyReplicas = tc.ready
		if _, err := (*Reconciler)(nil).noticeReady(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if again := box.Status.Fetcher.Revision == ""; again != tc.again {
			t.Errorf("%s: read again: %t", name, again)
		}
		if absent := len(box.Status.Conditions) == 0; absent != tc.absent {
			t.Errorf("%s: the condition is absent: %t", name, absent)
		}
	}
}
