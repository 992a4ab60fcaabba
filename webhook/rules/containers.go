// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// pod is what the rules of one container need to know of the others.
type pod struct {
	main            Main
	volumes, claims names
}

// containers judges the containers of a template, which are those besides the main
// one and what is added to the main one.
func containers(path *field.Path, spec *corev1.PodSpec, main Main) field.ErrorList {
	p := &pod{main: main, volumes: namesOf(spec.Volumes, volumeName), claims: namesOf(spec.ResourceClaims, claimName)}
	var errs field.ErrorList
	for i := range spec.Containers {
		at := path.Child("containers").Index(i)
		if c := &spec.Containers[i]; c.Name != "" && c.Name == main.Name {
			errs = append(errs, p.mainContainer(at, c)...)
		} else {
			errs = append(errs, p.otherContainer(at, c)...)
			errs = append(errs, probes(at, c, c.Ports)...)
		}
	}
	for i := range spec.InitContainers {
		at := path.Child("initContainers").Index(i)
		errs = append(errs, p.otherContainer(at, &spec.InitContainers[i])...)
		errs = append(errs, initContainer(at, &spec.InitContainers[i])...)
	}
	return append(errs, containerNames(path, spec, main)...)
}

func containerName(c *corev1.Container) string { return c.Name }

// containerNames judges that names are unique in both lists together, where the
// main container is one of the first, written or not.
func containerNames(path *field.Path, spec *corev1.PodSpec, main Main) field.ErrorList {
	errs := unique(path.Child("containers"), "name", spec.Containers, containerName)
	errs = append(errs, unique(path.Child("initContainers"), "name", spec.InitContainers, containerName)...)
	if len(spec.InitContainers) == 0 {
		return errs
	}
	others := namesOf(spec.Containers, containerName)
	for i := range spec.InitContainers {
		if name := spec.InitContainers[i].Name; name != "" && (name == main.Name || others.has(name)) {
			errs = append(errs, field.Duplicate(path.Child("initContainers").Index(i).Child("name"), name))
		}
	}
	return errs
}

// mainContainer judges what is added to the main container. Its reserved fields are
// taken out first: one error says that they are not written here.
func (p *pod) mainContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	rest := *c
	var errs field.ErrorList
	for _, reserved := range p.main.Reserved {
		if take(&rest, reserved.Field) {
			errs = append(errs, Ambiguous(field.Forbidden(path.Child(reserved.Field), "of the main container is written in "+reserved.Instead)))
		}
	}
	errs = append(errs, p.anyContainer(path, &rest)...)
	return append(errs, probes(path, &rest, slices.Concat(p.main.Ports, rest.Ports))...)
}

// take clears a field of a container and says whether it was set.
func take(c *corev1.Container, name string) bool {
	before := *c
	switch name {
	case "image":
		c.Image = ""
		return before.Image != ""
	case "resources":
		c.Resources = corev1.ResourceRequirements{}
		return len(before.Resources.Limits)+len(before.Resources.Requests)+len(before.Resources.Claims) > 0
	case "ports":
		c.Ports = nil
		return len(before.Ports) > 0
	case "env":
		c.Env = nil
		return len(before.Env) > 0
	case "envFrom":
		c.EnvFrom = nil
		return len(before.EnvFrom) > 0
	}
	return takeProbe(c, name)
}

func takeProbe(c *corev1.Container, name string) bool {
	before := *c
	switch name {
	case "readinessProbe":
		c.ReadinessProbe = nil
		return before.ReadinessProbe != nil
	case "livenessProbe":
		c.LivenessProbe = nil
		return before.LivenessProbe != nil
	case "startupProbe":
		c.StartupProbe = nil
		return before.StartupProbe != nil
	}
	return false
}

func (p *pod) otherContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	errs := Label(path.Child("name"), c.Name)
	errs = append(errs, Image(path.Child("image"), c.Image)...)
	return append(errs, p.anyContainer(path, c)...)
}

// anyContainer judges what all containers share.
func (p *pod) anyContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	var errs field.ErrorList
	policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	if c.ImagePullPolicy != "" && !slices.Contains(policies, c.ImagePullPolicy) {
		errs = append(errs, field.NotSupported(path.Child("imagePullPolicy"), c.ImagePullPolicy, policies))
	}
	errs = append(errs, containerPorts(path.Child("ports"), c.Ports)...)
	errs = append(errs, Env(path.Child("env"), c.Env)...)
	errs = append(errs, EnvFrom(path.Child("envFrom"), c.EnvFrom)...)
	errs = append(errs, Resources(path.Child("resources"), &c.Resources)...)
	errs = append(errs, claims(path.Child("resources"), c.Resources.Claims, p.claims)...)
	return append(errs, p.mounts(path, c)...)
}

func probes(path *field.Path, c *corev1.Container, ports []corev1.ContainerPort) field.ErrorList {
	errs := Probe(path.Child("readinessProbe"), c.ReadinessProbe, Readiness, ports)
	errs = append(errs, Probe(path.Child("livenessProbe"), c.LivenessProbe, Liveness, ports)...)
	return append(errs, Probe(path.Child("startupProbe"), c.StartupProbe, Startup, ports)...)
}

// isSidecar says whether an init container keeps running beside the others
// (KEP-753).
func isSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func initContainer(path *field.Path, c *corev1.Container) field.ErrorList {
	if isSidecar(c) {
		return probes(path, c, c.Ports)
	}
	var errs field.ErrorList
	for _, f := range [...]struct {
		name string
		set  bool
	}{
		{"lifecycle", c.Lifecycle != nil},
		{"readinessProbe", c.ReadinessProbe != nil},
		{"livenessProbe", c.LivenessProbe != nil},
		{"startupProbe", c.StartupProbe != nil},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), "is for init containers with restartPolicy: Always alone"))
		}
	}
	return errs
}
