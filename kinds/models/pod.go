// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// Volume is the name of the volume with spec.model, and begins that of another model.
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
	// volumePath is where the container that fetches sees the whole volume of spec.model, and begins the path of another one.
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

// Pod is what the models add to a pod.
type Pod struct {
	// Volumes are those of the models, with their mounts. Models in one claim share the volume of the first.
	Volumes []rules.OwnVolume
	// Fetch is the init container that fetches, nil if each model is an image or a claim.
	Fetch *corev1.Container
}

// PodOf returns what models add to a pod whose main container has these resources, nil for none.
func PodOf(models []Model, fetcher Fetcher, main corev1.ResourceRequirements) *Pod {
	if len(models) == 0 {
		return nil
	}
	pod := &Pod{}
	var fetched []Model
	for i := range models {
		m := &models[i]
		volume := corev1.Volume{Name: m.VolumeName(), VolumeSource: m.volumeSource()}
		if at := slices.IndexFunc(pod.Volumes, func(v rules.OwnVolume) bool { return sameClaim(&v.Volume, &volume) }); at >= 0 {
			volume = pod.Volumes[at].Volume // A pod that has one claim by two volumes does not start with each kubelet.
		}
		mount := corev1.VolumeMount{Name: volume.Name, MountPath: m.MountPath, SubPath: m.From.Path, ReadOnly: true}
		if m.From.IsFetched() {
			fetched, mount.SubPath = append(fetched, *m), m.Directory()
			if volume.PersistentVolumeClaim != nil {
				volume.PersistentVolumeClaim.ReadOnly = false
			}
		}
		pod.Volumes = append(pod.Volumes, rules.OwnVolume{Volume: volume, Mount: mount, Field: m.At.String()})
	}
	pod.Fetch = pod.container(fetched, fetcher, main)
	return pod
}

func sameClaim(a, b *corev1.Volume) bool {
	return a.PersistentVolumeClaim != nil && b.PersistentVolumeClaim != nil && a.PersistentVolumeClaim.ClaimName == b.PersistentVolumeClaim.ClaimName
}

// container returns the container that fetches models, nil for none.
func (p *Pod) container(models []Model, fetcher Fetcher, main corev1.ResourceRequirements) *corev1.Container {
	if len(models) == 0 {
		return nil
	}
	out := &corev1.Container{
		Name:            Container,
		Image:           fetcher.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{Command},
		Args:            p.args(models, fetcher.Mirrors),
		Resources:       corev1.ResourceRequirements{Limits: compute(main.Limits), Requests: compute(main.Requests)},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			ReadOnlyRootFilesystem:   new(true),
			RunAsNonRoot:             new(true),
			SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
	for i := range models {
		m := &models[i]
		mount := corev1.VolumeMount{Name: p.volumeOf(m), MountPath: pathOf(p.volumeOf(m))}
		if !slices.ContainsFunc(out.VolumeMounts, func(other corev1.VolumeMount) bool { return other.Name == mount.Name }) {
			out.VolumeMounts = append(out.VolumeMounts, mount)
		}
		if m.Credentials != nil {
			out.EnvFrom = append(out.EnvFrom, corev1.EnvFromSource{
				Prefix: m.envPrefix(), SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *m.Credentials},
			})
		}
	}
	return out
}

// volumeOf returns the name of the volume that has a model, which another model in the same claim may define.
func (p *Pod) volumeOf(m *Model) string {
	return p.Volumes[slices.IndexFunc(p.Volumes, func(v rules.OwnVolume) bool { return v.Field == m.At.String() })].Volume.Name
}

// pathOf returns where the container that fetches sees a volume.
func pathOf(volume string) string { return volumePath + strings.TrimPrefix(volume, Volume) }

// args returns the command line. The kubelet expands $(NAME) in it, so each $ is doubled, which
// the kubelet makes one again.
func (p *Pod) args(models []Model, mirrors []string) []string {
	first := &models[0]
	out := []string{"--models=" + p.list(models)}
	if len(models) == 1 && first.Name == "" {
		out = first.args()
	}
	for _, mirror := range mirrors {
		out = append(out, mirrorFlag+mirror)
	}
	if len(models) == 1 && first.Name == "" && first.Claim != "" {
		out = append(out, "--shared")
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], "$", "$$")
	}
	return out
}

// args returns the flags of spec.model where it is the only one.
func (m *Model) args() []string {
	out := []string{"--uri=" + m.URI}
	if m.SHA256 != "" {
		out = append(out, "--sha256="+strings.ToLower(m.SHA256))
	}
	out = append(out, "--volume="+volumePath, "--directory="+m.Directory(), "--size-limit="+strconv.FormatInt(m.SizeLimit.Value(), 10))
	for _, pattern := range m.Include {
		out = append(out, "--include="+pattern)
	}
	for _, pattern := range m.Exclude {
		out = append(out, "--exclude="+pattern)
	}
	return out
}

// list returns the models as JSON.
func (p *Pod) list(models []Model) string {
	list := make([]modeluri.Argument, len(models))
	for i := range models {
		m := &models[i]
		list[i] = modeluri.Argument{
			Name: m.Name, URI: m.URI, SHA256: strings.ToLower(m.SHA256), Volume: pathOf(p.volumeOf(m)), Directory: m.Directory(),
			SizeLimit: m.SizeLimit.Value(), Shared: m.Claim != "", Include: m.Include, Exclude: m.Exclude, EnvPrefix: m.envPrefix(),
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // A URI with & stays readable.
	_ = encoder.Encode(list)     // Texts and numbers can always be encoded.
	return strings.TrimSpace(out.String())
}

// Fetched returns the URI of spec.model that a container fetches, and the digest that it verifies, "" for none.
func Fetched(c *corev1.Container) (uri, digest string) {
	for _, arg := range c.Args {
		name, value, _ := strings.Cut(strings.ReplaceAll(arg, "$$", "$"), "=")
		switch name {
		case "--uri":
			uri = value
		case "--sha256":
			digest = "sha256:" + value
		case "--models":
			var list []modeluri.Argument
			if err := json.Unmarshal([]byte(value), &list); err == nil && len(list) > 0 && list[0].Name == "" {
				uri = list[0].URI
				if list[0].SHA256 != "" {
					digest = "sha256:" + list[0].SHA256
				}
			}
		}
	}
	return uri, digest
}

// compute returns CPU and memory of the main container. So the container that fetches changes
// neither what the scheduler reserves for the pod, which is the maximum of both, nor the pod's
// quality of service class.
func compute(of corev1.ResourceList) corev1.ResourceList {
	out := maps.Clone(of)
	maps.DeleteFunc(out, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return name != corev1.ResourceCPU && name != corev1.ResourceMemory
	})
	if memory, ok := out[corev1.ResourceMemory]; ok && memory.Cmp(minMemory) < 0 {
		out[corev1.ResourceMemory] = minMemory
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

// Settle completes a pod with the models, into which a pod template was merged. The container that
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
		if slices.ContainsFunc(p.Volumes, func(v rules.OwnVolume) bool {
			claim := v.Volume.PersistentVolumeClaim
			return claim != nil && !claim.ReadOnly
		}) {
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
	out := ptr.Deref(context, corev1.PodSecurityContext{})
	if out.FSGroup == nil {
		out.FSGroup, out.FSGroupChangePolicy = new(imageGroup), new(corev1.FSGroupChangeOnRootMismatch)
	}
	return &out
}
