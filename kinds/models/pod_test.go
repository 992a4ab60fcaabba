// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	podresource "k8s.io/kubernetes/pkg/api/v1/resource"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

var hash = strings.Repeat("0A", 32)

// podOf returns what a model, and others, add to the pod of a main container with these resources.
func podOf(t *testing.T, model modelv1.Model, resources corev1.ResourceRequirements, more ...modelv1.NamedModel) *Pod {
	t.Helper()
	models := Of(&modelv1.ModelBoxSpec{Model: &model, Models: more})
	for i := range models {
		if models[i].Err != nil {
			t.Fatal(models[i].Err)
		}
	}
	return PodOf(models, Fetcher{Image: "controller:1", Mirrors: []string{"hf://=https://a$(HOME)"}}, resources)
}

// The kubelet expands references to variables in a command line. The program must get what is
// in the object, whatever that is.
func TestArgsSurviveTheExpansionOfVariables(t *testing.T) {
	t.Parallel()
	expand := expansion.MappingFuncFor(map[string]string{"AWS_SECRET_ACCESS_KEY": "secret", "HOME": "/root"})
	for _, path := range []string{"a", "$(AWS_SECRET_ACCESS_KEY)", "$$(HOME)", "$", "$$", "$$$(HOME)$", "$(UNKNOWN)", "%24(HOME)"} {
		uri := "https://models.example.com/" + path
		fetch := podOf(t, modelv1.Model{URI: uri, SHA256: hash}, corev1.ResourceRequirements{}).Fetch
		var got []string
		for _, arg := range fetch.Args {
			got = append(got, expansion.Expand(arg, expand))
		}
		want := []string{"--uri=" + uri, "--sha256=" + strings.ToLower(hash), "--volume=/volume", "--directory=model", "--size-limit=21474836480", "--mirror=hf://=https://a$(HOME)"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// In a claim, models have one directory if and only if they are the same.
func TestDirectoriesOfAClaim(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("0", 40)
	same := [][]modelv1.Model{
		{{URI: "https://a/b.bin", SHA256: hash}, {URI: "s3://bucket/c/b.bin", SHA256: strings.ToLower(hash)}, {URI: "https://a/x/b.bin?token=1", SHA256: hash}},
		{{URI: "https://a/c.bin", SHA256: hash}},
		{{URI: "https://a/b.bin", SHA256: strings.Repeat("1", 64)}},
		{{URI: "hf://a/b@" + commit}, {URI: "hf://a/b@" + commit}},
		{{URI: "hf://a/b@" + commit + "/onnx"}},
	}
	seen := map[string]int{}
	for i, models := range same {
		for _, model := range models {
			model.Claim = "models"
			pod := podOf(t, model, corev1.ResourceRequirements{})
			name := pod.Volumes[0].Mount.SubPath
			if before, ok := seen[name]; ok && before != i {
				t.Errorf("%s and %v have the directory %s", model.URI, same[before], name)
			}
			seen[name] = i
			if !slices.Contains(pod.Fetch.Args, "--directory="+name) || !slices.Contains(pod.Fetch.Args, "--shared") {
				t.Errorf("%s: %v", model.URI, pod.Fetch.Args)
			}
			if model.SHA256 != "" && !strings.HasPrefix(name, strings.ToLower(model.SHA256)) {
				t.Errorf("%s: %s", model.URI, name)
			}
		}
	}
	if len(seen) != len(same) {
		t.Errorf("%d directories", len(seen))
	}
}

// The container that fetches neither changes the quality of service class of a pod, nor what is
// reserved for it.
func TestResourcesOfThePodStay(t *testing.T) {
	t.Parallel()
	list := func(cpu, memory string) corev1.ResourceList {
		out := corev1.ResourceList{}
		if cpu != "" {
			out[corev1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			out[corev1.ResourceMemory] = resource.MustParse(memory)
		}
		return out
	}
	gpu := list("4", "8Gi")
	gpu["nvidia.com/gpu"] = resource.MustParse("1")
	for name, r := range map[string]corev1.ResourceRequirements{
		"none":            {},
		"guaranteed":      {Limits: list("1", "2Gi"), Requests: list("1", "2Gi")},
		"limits alone":    {Limits: list("1", "256Mi")},
		"burstable":       {Limits: list("2", "2Gi"), Requests: list("100m", "256Mi")},
		"requests of cpu": {Requests: list("100m", "")},
		"with a gpu":      {Limits: gpu, Requests: gpu},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: r}}}}
		class, requests := qos.ComputePodQOS(pod), requestsOf(pod)
		pod.Spec.InitContainers = []corev1.Container{*podOf(t, modelv1.Model{URI: "https://a/b"}, r).Fetch}
		if _, ok := pod.Spec.InitContainers[0].Resources.Limits["nvidia.com/gpu"]; ok {
			t.Errorf("%s: the container that fetches occupies a device", name)
		}
		if got := qos.ComputePodQOS(pod); got != class {
			t.Errorf("%s: %s, and %s with a model", name, class, got)
		}
		if diff := cmp.Diff(requests, requestsOf(pod)); diff != "" {
			t.Errorf("%s (-without a model +with one):\n%s", name, diff)
		}
	}
	little := podOf(t, modelv1.Model{URI: "https://a/b"}, corev1.ResourceRequirements{Limits: list("1", "64Mi")}).Fetch
	if got := little.Resources.Limits.Memory(); got.Cmp(minMemory) != 0 {
		t.Errorf("a memory limit of 64Mi became %s", got)
	}
}

// requestsOf returns what the scheduler reserves for a pod.
func requestsOf(pod *corev1.Pod) (out []string) {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, "nvidia.com/gpu"} {
		quantity := podresource.GetResourceRequestQuantity(pod, name)
		out = append(out, quantity.String())
	}
	return out
}

func TestVolumes(t *testing.T) {
	t.Parallel()
	image := "registry.example.com/team/model@sha256:" + strings.ToLower(hash)
	for uri, want := range map[string]*Pod{
		"oci://" + image: {Volumes: ownVolume(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image, PullPolicy: corev1.PullIfNotPresent}}, "")},
		"pvc://models/a": {Volumes: ownVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "models", ReadOnly: true}}, "a")},
	} {
		if diff := cmp.Diff(want, podOf(t, modelv1.Model{URI: uri, MountPath: "/m"}, corev1.ResourceRequirements{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", uri, diff)
		}
	}
	fetched := podOf(t, modelv1.Model{URI: "https://a/b", MountPath: "/m", SizeLimit: new(resource.MustParse("1Gi")), Credentials: &corev1.LocalObjectReference{Name: "s"}}, corev1.ResourceRequirements{})
	want := ownVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse("1Gi"))}}, "model")
	if diff := cmp.Diff(want, fetched.Volumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if from := fetched.Fetch.EnvFrom; len(from) != 1 || from[0].SecretRef.Name != "s" || !slices.Contains(fetched.Fetch.Args, "--size-limit=1073741824") {
		t.Errorf("%+v", fetched.Fetch)
	}
	shared := podOf(t, modelv1.Model{URI: "https://a/b", SHA256: hash, Claim: "models"}, corev1.ResourceRequirements{})
	if claim := shared.Volumes[0].Volume.PersistentVolumeClaim; claim == nil || claim.ClaimName != "models" || claim.ReadOnly || !shared.Volumes[0].Mount.ReadOnly {
		t.Errorf("%+v", shared.Volumes)
	}
}

func ownVolume(source corev1.VolumeSource, subPath string) []rules.OwnVolume {
	return []rules.OwnVolume{{
		Volume: corev1.Volume{Name: Volume, VolumeSource: source},
		Mount:  corev1.VolumeMount{Name: Volume, MountPath: "/m", SubPath: subPath, ReadOnly: true},
		Field:  "spec.model",
	}}
}

// Each model has its own credentials, whatever the names are.
func TestEnvironmentsOfSeveralModels(t *testing.T) {
	t.Parallel()
	var more []modelv1.NamedModel
	for _, name := range []string{"a", "a-b", "b", "1", "a-1"} {
		more = append(more, modelv1.NamedModel{Name: name, Model: modelv1.Model{URI: "https://a/" + name, Credentials: &corev1.LocalObjectReference{Name: "of-" + name}}})
	}
	fetch := podOf(t, modelv1.Model{URI: "https://a/b", Credentials: &corev1.LocalObjectReference{Name: "own"}}, corev1.ResourceRequirements{}, more...).Fetch
	if len(fetch.EnvFrom) != len(more)+1 || fetch.EnvFrom[0].Prefix != "" {
		t.Fatalf("%+v", fetch.EnvFrom)
	}
	for _, a := range fetch.EnvFrom[1:] {
		if errs := validation.IsEnvVarName(a.Prefix); len(errs) > 0 {
			t.Errorf("%s: %v", a.Prefix, errs)
		}
		for _, b := range fetch.EnvFrom[1:] {
			if a.SecretRef.Name != b.SecretRef.Name && strings.HasPrefix(a.Prefix, b.Prefix) {
				t.Errorf("a key of %s can be a variable of %s", b.SecretRef.Name, a.SecretRef.Name)
			}
		}
	}
}

// The files that patterns select are a model of their own in a claim.
func TestPatternsAreAPartOfTheDirectory(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	models := []modelv1.Model{{}, {Include: []string{"a"}}, {Exclude: []string{"a"}}, {Include: []string{"a", "b"}}, {Include: []string{"a"}, Exclude: []string{"b"}}, {Include: []string{"a b"}}}
	for _, m := range models {
		m.URI, m.Claim = "hf://a/b@"+strings.Repeat("0", 40), "models"
		pod := podOf(t, m, corev1.ResourceRequirements{})
		seen[pod.Volumes[0].Mount.SubPath] = true
		for flag, patterns := range map[string][]string{"--include=": m.Include, "--exclude=": m.Exclude} {
			for _, pattern := range patterns {
				if !slices.Contains(pod.Fetch.Args, flag+pattern) {
					t.Errorf("%v: %v", m, pod.Fetch.Args)
				}
			}
		}
	}
	if len(seen) != len(models) {
		t.Errorf("%d directories of %d models", len(seen), len(models))
	}
}

// A command line has at most 128 KiB in one argument (MAX_ARG_STRLEN of Linux).
func TestTheLongestArgument(t *testing.T) {
	t.Parallel()
	long := modelv1.Model{URI: "hf://a/b@" + strings.Repeat("0", 40) + "/" + strings.Repeat(strings.Repeat("\"", 199)+"/", 9), Claim: strings.Repeat("c", 253)}
	for range 16 {
		long.Include, long.Exclude = append(long.Include, strings.Repeat("\"", 128)), append(long.Exclude, strings.Repeat("\\", 128))
	}
	var more []modelv1.NamedModel
	for i := range 8 {
		more = append(more, modelv1.NamedModel{Name: strings.Repeat(strconv.Itoa(i), 40), Model: long})
	}
	for _, arg := range podOf(t, long, corev1.ResourceRequirements{}, more...).Fetch.Args {
		if len(arg) >= 128<<10 {
			t.Errorf("an argument has %d bytes", len(arg))
		}
	}
}
