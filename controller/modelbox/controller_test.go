// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
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
		"of one that runs":            {message: right, change: func(pod *corev1.Pod) { pod.Status.InitContainerStatuses[0].State.Terminated = nil }, empty: true},
	} {
		pod := corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{*fetch.DeepCopy()}}}
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
			Name: fetch.Name, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: tc.message}},
		}}
		if tc.change != nil {
			tc.change(&pod)
		}
		want, wantLora := modelv1.ModelStatus{URI: uri, Digest: "sha256:" + strings.ToLower(sum), Bytes: 7}, modelv1.ModelStatus{URI: folder, Digest: "sha256:" + other, Bytes: 1<<53 - 1}
		if tc.empty {
			want, wantLora = modelv1.ModelStatus{}, modelv1.ModelStatus{}
		}
		model, named := fetchedBy(all, fetch, []corev1.Pod{{}, pod})
		if diff := cmp.Diff(&want, model) + cmp.Diff([]modelv1.NamedModelStatus{{Name: "lora", ModelStatus: wantLora}}, named); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A model that an earlier release has left in a claim has no digest, and still a URI.
func TestAModelWhoseDigestIsNotKnown(t *testing.T) {
	t.Parallel()
	all := models.Of(&modelv1.ModelBoxSpec{ModelFileURL: "hf://org/name@" + strings.Repeat("0a", 20)})
	pod := corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: models.Container}}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: models.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: `{"models":[{}]}`}},
	}}
	model, named := fetchedBy(all, &pod.Spec.InitContainers[0], []corev1.Pod{pod})
	if diff := cmp.Diff(&modelv1.ModelStatus{URI: all[0].URI}, model); diff != "" || named != nil {
		t.Error(diff, named)
	}
}
