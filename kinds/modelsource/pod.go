// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelsource

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// Volume is the name of the volume with the model.
	Volume = "model"
	// Container is the name of the init container that fetches the model.
	Container = "fetch-model"
	// Command is its entrypoint. No other container has it together with that name.
	Command = "/fetch-model"

	// ownDirectory is the model's directory in the volume of a pod.
	ownDirectory = "model"
	// imageGroup is the group of the user that the image runs as (Dockerfile.controller).
	imageGroup = int64(65532)

	// mirrorFlag begins each of the arguments with a mirror.
	mirrorFlag = "--mirror="
	// volumePath is where the container that fetches sees the whole volume.
	volumePath = "/volume"
)

// minMemory is the least memory of the container that fetches, where the main container has a
// memory limit or request: what it needs for the largest window of Zstandard, and page cache.
var minMemory = resource.MustParse("256Mi")

// Fetcher is what the operator, and not the object, decides of the container that fetches.
type Fetcher struct {
	// Image has the program.
	Image string `json:"image"`
	// Mirrors are the arguments of its flag --mirror: PREFIX=REPLACEMENT.
	Mirrors []string `json:"mirrors,omitempty"`
}

// Pod is what a model adds to a pod.
type Pod struct {
	Volume rules.OwnVolume
	// Fetch is the init container that fetches, nil if the model is an image or a claim.
	Fetch *corev1.Container
}

// PodOf returns what a model with its defaults adds to a pod whose main container has these
// resources.
func PodOf(model *modelv1.Model, uri URI, fetcher Fetcher, main *corev1.ResourceRequirements) Pod {
	pod := Pod{Volume: rules.OwnVolume{
		Volume: corev1.Volume{Name: Volume, VolumeSource: volumeSource(model, uri)},
		Mount:  corev1.VolumeMount{Name: Volume, MountPath: model.MountPath, SubPath: uri.Path, ReadOnly: true},
		Field:  "spec.model",
	}}
	if uri.IsFetched() {
		name := directory(model, uri)
		pod.Volume.Mount.SubPath = name
		pod.Fetch = container(model, name, fetcher, main)
	}
	return pod
}

func volumeSource(model *modelv1.Model, uri URI) corev1.VolumeSource {
	switch {
	case uri.Scheme == Image:
		return corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: uri.Image, PullPolicy: corev1.PullIfNotPresent}}
	case uri.Scheme == Claim:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: uri.Claim, ReadOnly: true}}
	case model.Claim != "":
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: model.Claim}}
	}
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: model.SizeLimit}}
}

// directory returns the name of the model's directory in its volume. In a claim, models that
// differ have different names, and equal ones have the same: the hash of what is fetched, with
// that of the file's name, which decides whether it is unpacked and what it is called.
func directory(model *modelv1.Model, uri URI) string {
	switch {
	case model.Claim == "":
		return ownDirectory
	case uri.Scheme == Hub:
		return hexOf(model.URI)
	}
	const nameDigits = 8
	return strings.ToLower(model.SHA256) + "-" + hexOf(uri.File)[:nameDigits]
}

func hexOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func container(model *modelv1.Model, name string, fetcher Fetcher, main *corev1.ResourceRequirements) *corev1.Container {
	out := &corev1.Container{
		Name:            Container,
		Image:           fetcher.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{Command},
		Args:            args(model, name, fetcher.Mirrors),
		Resources:       resources(main),
		VolumeMounts:    []corev1.VolumeMount{{Name: Volume, MountPath: volumePath}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			ReadOnlyRootFilesystem:   new(true),
			RunAsNonRoot:             new(true),
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	if model.Credentials != nil {
		out.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *model.Credentials}}}
	}
	return out
}

// args returns the command line. The kubelet expands $(NAME) in it, so each $ is doubled, which
// the kubelet makes one again.
func args(model *modelv1.Model, name string, mirrors []string) []string {
	out := []string{"--uri=" + model.URI}
	if model.SHA256 != "" {
		out = append(out, "--sha256="+strings.ToLower(model.SHA256))
	}
	out = append(out, "--volume="+volumePath, "--directory="+name, "--size-limit="+strconv.FormatInt(model.SizeLimit.Value(), 10))
	for _, mirror := range mirrors {
		out = append(out, mirrorFlag+mirror)
	}
	if model.Claim != "" {
		out = append(out, "--shared")
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "$", "$$")
	}
	return out
}

// resources returns CPU and memory of the main container. So the container that fetches changes
// neither what the scheduler reserves for the pod, which is the maximum of both, nor the pod's
// quality of service class.
func resources(main *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if main == nil {
		return corev1.ResourceRequirements{}
	}
	return corev1.ResourceRequirements{Limits: compute(main.Limits), Requests: compute(main.Requests)}
}

func compute(of corev1.ResourceList) corev1.ResourceList {
	var out corev1.ResourceList
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		amount, ok := of[name]
		if !ok {
			continue
		}
		if name == corev1.ResourceMemory && amount.Cmp(minMemory) < 0 {
			amount = minMemory
		}
		if out == nil {
			out = corev1.ResourceList{}
		}
		out[name] = amount
	}
	return out
}

// IsFetcher reports whether an init container is the one that fetches a model.
func IsFetcher(c *corev1.Container) bool {
	return c.Name == Container && len(c.Command) == 1 && c.Command[0] == Command
}

// WithoutFetcher returns the container that fetches a model as its object alone defines it:
// without what Fetcher has.
func WithoutFetcher(c corev1.Container) corev1.Container {
	c.Image = ""
	c.Args = slices.DeleteFunc(slices.Clone(c.Args), func(arg string) bool { return strings.HasPrefix(arg, mirrorFlag) })
	return c
}

// Settle completes a pod with the model, into which a pod template was merged. The container that
// fetches runs before every other one, and what it fetches and how is not the template's to
// change. Where the pod runs as root, so does it; otherwise it can write to a claim, whose volume
// mostly belongs to root.
func (p *Pod) Settle(pod *corev1.PodSpec) {
	at := slices.IndexFunc(pod.InitContainers, func(c corev1.Container) bool { return c.Name == Container })
	if p.Fetch == nil || at < 0 {
		return
	}
	c, fetch := pod.InitContainers[at], p.Fetch
	c.Image, c.ImagePullPolicy, c.Command, c.Args, c.EnvFrom = fetch.Image, fetch.ImagePullPolicy, fetch.Command, fetch.Args, fetch.EnvFrom
	switch {
	case !runsAsRoot(pod.SecurityContext):
		if p.Volume.Volume.PersistentVolumeClaim != nil {
			pod.SecurityContext = withGroup(pod.SecurityContext)
		}
	case c.SecurityContext != nil && c.SecurityContext.RunAsUser == nil:
		c.SecurityContext.RunAsNonRoot = nil
	}
	pod.InitContainers = slices.Insert(slices.Delete(pod.InitContainers, at, at+1), 0, c)
}

func runsAsRoot(context *corev1.PodSecurityContext) bool {
	return context != nil && context.RunAsUser != nil && *context.RunAsUser == 0
}

// withGroup returns the security context with fsGroup, that of the image's user if there is none.
// The kubelet changes the group of a volume once, and not with each pod.
func withGroup(context *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	var out corev1.PodSecurityContext
	if context != nil {
		out = *context
	}
	if out.FSGroup == nil {
		out.FSGroup, out.FSGroupChangePolicy = new(imageGroup), new(corev1.FSGroupChangeOnRootMismatch)
	}
	return &out
}
