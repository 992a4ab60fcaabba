// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// The reasons of problems. Where kubelet or the scheduler has a word for it, that is the reason.
const (
	reasonReplicaFailure    = "ReplicaFailure"    // No pod can be created: a quota or Pod Security refuses it.
	reasonPodsMissing       = "PodsMissing"       // The DaemonSet controller has not created the pods of some nodes.
	reasonImagePullBackOff  = "ImagePullBackOff"  // Also between two attempts.
	reasonOOMKilled         = "OOMKilled"         // A container exceeded its memory limit.
	reasonCrashLoopBackOff  = "CrashLoopBackOff"  // A container exits again and again.
	reasonModelFetchFailed  = "ModelFetchFailed"  // The init container of spec.model has exited with an error.
	reasonFetchingModel     = "FetchingModel"     // The init container of spec.model runs.
	reasonPodInitializing   = "PodInitializing"   // Another init container runs.
	reasonContainerCreating = "ContainerCreating" // kubelet has been creating a container for long.
	reasonNotStarted        = "NotStarted"        // The startup probe has not succeeded yet.
	reasonNotReady          = "NotReady"          // The readiness probe fails.
	reasonPodNotReady       = "PodNotReady"       // All containers are ready, and the pod is not.
	reasonPending           = "Pending"           // The scheduler, or kubelet, has not acted on the pod.
	reasonPodNotDeleted     = "PodNotDeleted"     // The pod exists although its grace period is over.
	reasonPodFailed         = "PodFailed"         // The pod has failed, and its status has no reason.
)

// needIntervention are the reasons whose cause stays until a change from outside: of the object,
// of a Secret, of the registry, of the nodes. A newer kubelet may have other reasons, for what passes.
var needIntervention = sets.New(reasonReplicaFailure, "InvalidImageName", "ErrImageNeverPull", "ImageInspectError", reasonImagePullBackOff,
	"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "PostStartHookError", reasonOOMKilled,
	reasonCrashLoopBackOff, reasonModelFetchFailed, corev1.PodReasonUnschedulable)

const (
	// maxMessage, maxReason and maxContainer are the bounds of the schema; messages are cut at as
	// many bytes.
	maxMessage, maxReason, maxContainer = 1024, 128, 63
	// maxRaw bounds what is read of a message. kubelet's are at most 12 kB for a pod.
	maxRaw = 8 << 10
	// maxCommand bounds what is quoted of a probe.
	maxCommand = 100
	// long is how long kubelet or the scheduler may need before that is a problem.
	long = time.Minute
	// briefly is how long a pod may be unschedulable before intervention is needed (during a
	// rollout, what it needs is often that of a pod that is being deleted), and how long it may
	// exist after its grace period.
	briefly = 30 * time.Second
	// recentExit is how long after an exit a container that is not ready again counts as one
	// that crashes. kubelet's longest pause between two starts is 5 minutes; in these phases
	// the container is waiting, running and terminated in turn, and has one problem.
	recentExit = 10 * time.Minute
)

// ofPod returns the problem of a pod, nil if it has none.
func ofPod(pod *corev1.Pod, now time.Time) *finding {
	scheduled := conditionOf(pod, corev1.PodScheduled)
	switch {
	case pod.DeletionTimestamp != nil:
		if now.Sub(pod.DeletionTimestamp.Time) < briefly {
			return nil
		}
		return newFinding(pod, reasonPodNotDeleted, "the pod still exists after its grace period: its node may be down, or it has a finalizer")
	case pod.Status.Phase == corev1.PodSucceeded:
		return nil
	case pod.Status.Phase == corev1.PodFailed: // Evicted, preempted, refused by kubelet. It is replaced.
		f := newFinding(pod, reasonOr(pod.Status.Reason, reasonPodFailed), clean(pod.Status.Message))
		f.needsIntervention = false
		return f
	case pod.Spec.NodeName == "" && scheduled != nil && scheduled.Status == corev1.ConditionFalse:
		f := newFinding(pod, reasonOr(scheduled.Reason, reasonPending), clean(scheduled.Message))
		f.Since = scheduled.LastTransitionTime
		f.needsIntervention = f.needsIntervention && now.Sub(f.Since.Time) >= briefly
		return f
	case pod.Spec.NodeName == "":
		return afterLong(pod, now, reasonPending, "no scheduler has placed the pod: check that kube-scheduler runs, and schedulerName")
	case len(pod.Status.ContainerStatuses) == 0 && len(pod.Status.InitContainerStatuses) == 0:
		return afterLong(pod, now, reasonPending, "kubelet has not started the pod: check that its node is ready")
	}
	if f := ofContainers(pod, now); f != nil {
		return f
	}
	return notReady(pod)
}

// afterLong returns a problem that a pod has only after some time.
func afterLong(pod *corev1.Pod, now time.Time, reason, message string) *finding {
	if now.Sub(pod.CreationTimestamp.Time) < long {
		return nil
	}
	return newFinding(pod, reason, message)
}

// ofContainers returns the problem of the first container that waits or has terminated, otherwise of
// the first one that is not ready.
func ofContainers(pod *corev1.Pod, now time.Time) *finding {
	var first *finding
	for _, group := range []struct {
		statuses []corev1.ContainerStatus
		specs    []corev1.Container
		init     bool
	}{{pod.Status.InitContainerStatuses, pod.Spec.InitContainers, true}, {pod.Status.ContainerStatuses, pod.Spec.Containers, false}} {
		for i := range group.statuses {
			c := &container{pod: pod, spec: named(group.specs, group.statuses[i].Name), status: &group.statuses[i], init: group.init, now: now}
			f := c.problem()
			if f != nil && f.needsIntervention {
				return f
			}
			first = cmp.Or(first, f)
		}
	}
	return first
}

func named(specs []corev1.Container, name string) *corev1.Container {
	for i := range specs {
		if specs[i].Name == name {
			return &specs[i]
		}
	}
	return &corev1.Container{}
}

// container is a container of a pod, with its status.
type container struct {
	pod    *corev1.Pod
	spec   *corev1.Container // Empty if the pod has none of this name.
	status *corev1.ContainerStatus
	init   bool
	now    time.Time
}

func (c *container) problem() *finding {
	state, last := &c.status.State, c.status.LastTerminationState.Terminated
	switch {
	case c.status.Ready && state.Terminated == nil:
		return nil
	case state.Waiting != nil:
		return c.waiting(state.Waiting)
	case state.Terminated != nil:
		if c.runsOnce() && state.Terminated.ExitCode == 0 {
			return nil
		}
		return c.crashed(state.Terminated)
	case last != nil && c.status.RestartCount > 0 && c.now.Sub(last.FinishedAt.Time) < recentExit:
		return c.crashed(last)
	case state.Running != nil:
		return c.running(state.Running)
	}
	return nil
}

// runsOnce reports whether it is an init container that is to complete, and no sidecar.
func (c *container) runsOnce() bool {
	return c.init && ptr.Deref(c.spec.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways
}

// fetches reports whether it is the init container that fetches the model of a ModelBox. Its
// termination message says why it failed.
func (c *container) fetches() bool { return c.init && modelsource.IsFetcher(c.spec) }

// backOff is what kubelet writes before the answer of the registry while it waits for the next
// attempt.
var backOff = regexp.MustCompile(`^Back-off pulling image "[^"]*": (ErrImagePull: )?`)

func (c *container) waiting(state *corev1.ContainerStateWaiting) *finding {
	switch state.Reason {
	case "", reasonPodInitializing:
		return nil // An init container has the problem.
	case reasonContainerCreating: // kubelet knows the reason, and says it only in an event.
		return afterLong(c.pod, c.now, reasonContainerCreating,
			"kubelet pulls the image, or waits for a volume or for the network of the pod; the events of the pod say which (kubectl describe pod)").in(c)
	case reasonCrashLoopBackOff, "RunContainerError":
		if last := c.status.LastTerminationState.Terminated; last != nil {
			return c.crashed(last)
		}
	case reasonImagePullBackOff, "ErrImagePull": // They alternate.
		return c.finding(reasonImagePullBackOff, clean(backOff.ReplaceAllString(state.Message, "")))
	case "RegistryUnavailable", "SignatureValidationFailed":
		return c.finding(reasonImagePullBackOff, state.Reason+": "+clean(state.Message))
	}
	return c.finding(reasonOr(state.Reason, reasonPending), clean(state.Message))
}

// crashed returns the problem of a container that has exited.
func (c *container) crashed(last *corev1.ContainerStateTerminated) *finding {
	line := clean(lastLine(last.Message))
	if c.fetches() && line != "" {
		return c.finding(reasonModelFetchFailed, line)
	}
	reason, message := reasonCrashLoopBackOff, exitOf(last)
	if last.Reason == reasonOOMKilled {
		reason, message = reasonOOMKilled, c.memoryLimit()+"; "+message
	}
	if line != "" {
		message += ": " + line
	}
	return c.finding(reason, message)
}

// exitOf returns the exit code, and kubelet's reason where it says more.
func exitOf(last *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", last.ExitCode)
	if reason := reasonOr(last.Reason, "Error"); reason != "Error" && reason != reasonOOMKilled {
		text += " (" + reason + ")"
	}
	return text
}

func (c *container) memoryLimit() string {
	if limit, ok := c.spec.Resources.Limits[corev1.ResourceMemory]; ok {
		return "the container needed more than its memory limit of " + limit.String()
	}
	return "the pod or the node ran out of memory, and the container has no memory limit of its own"
}

// running returns the problem of a container that runs and is not ready.
func (c *container) running(state *corev1.ContainerStateRunning) *finding {
	var f *finding
	started := ptr.Deref(c.status.Started, false)
	switch {
	case c.fetches():
		f = c.finding(reasonFetchingModel, "the model is being fetched; the log of the container has the progress")
	case c.runsOnce():
		f = c.finding(reasonPodInitializing, "the init container has not completed yet")
	case !started && c.spec.StartupProbe != nil:
		f = c.finding(reasonNotStarted, "the startup probe has not succeeded yet: "+c.action(c.spec.StartupProbe))
	case started && c.spec.ReadinessProbe != nil:
		return c.finding(reasonNotReady, "the readiness probe does not succeed: "+c.action(c.spec.ReadinessProbe))
	default:
		return nil // kubelet has not observed it yet.
	}
	f.Since = state.StartedAt
	return f
}

// action describes the action of a probe, such as "tcpSocket :8080".
func (c *container) action(probe *corev1.Probe) string {
	var text string
	switch {
	case probe.TCPSocket != nil:
		text = fmt.Sprintf("tcpSocket %s:%s", probe.TCPSocket.Host, probe.TCPSocket.Port.String())
	case probe.HTTPGet != nil:
		text = fmt.Sprintf("httpGet %s:%s%s", probe.HTTPGet.Host, probe.HTTPGet.Port.String(), probe.HTTPGet.Path)
	case probe.GRPC != nil:
		text = fmt.Sprintf("grpc :%d", probe.GRPC.Port)
	case probe.Exec != nil:
		text = "exec " + strings.Join(probe.Exec.Command[:min(len(probe.Exec.Command), maxCommand)], " ")
	}
	return rules.Cut(clean(text), maxCommand)
}

func (c *container) finding(reason, message string) *finding {
	return newFinding(c.pod, reason, message).in(c)
}

// in names the container that has the problem. f may be nil.
func (f *finding) in(c *container) *finding {
	if f != nil {
		f.Container = rules.Cut(oneLine(c.status.Name), maxContainer)
	}
	return f
}

// notReady returns the problem of a pod whose containers have none.
func notReady(pod *corev1.Pod) *finding {
	ready := conditionOf(pod, corev1.PodReady)
	if ready == nil || ready.Status == corev1.ConditionTrue {
		return nil
	}
	for i := range pod.Status.ContainerStatuses {
		if !pod.Status.ContainerStatuses[i].Ready {
			return nil
		}
	}
	if len(pod.Spec.ReadinessGates) > 0 {
		return newFinding(pod, reasonOr(ready.Reason, reasonPodNotReady), clean(ready.Message))
	}
	return newFinding(pod, reasonPodNotReady, "all containers are ready and the pod is not; kubelet may not report any more: check that its node is ready")
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// podNotReadySince returns since when a pod has not been ready. It does not change when a
// container that never becomes ready is restarted.
func podNotReadySince(pod *corev1.Pod) metav1.Time {
	if ready := conditionOf(pod, corev1.PodReady); ready != nil && ready.Status != corev1.ConditionTrue && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime
	}
	return pod.CreationTimestamp
}

// colours are what programs write for a terminal.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// clean returns a message of the cluster as one line, not longer than a message may be.
func clean(message string) string {
	message = colours.ReplaceAllString(rules.Cut(message, maxRaw), "")
	return rules.Cut(strings.Join(strings.Fields(oneLine(message)), " "), maxMessage)
}

// oneLine replaces control characters by spaces, and removes what is not valid UTF-8.
func oneLine(text string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Cf, r) {
			return ' '
		}
		return r
	}, text), "")
}

// lastLine returns the last line of a text that is not empty.
func lastLine(text string) string {
	if len(text) > maxRaw {
		text = text[len(text)-maxRaw:]
	}
	text = strings.TrimSpace(text)
	return text[strings.LastIndexAny(text, "\r\n")+1:]
}

var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// reasonOr returns a reason of the cluster, or another one if it is not one word.
func reasonOr(reason, otherwise string) string {
	if len(reason) > maxReason || !word.MatchString(reason) {
		return otherwise
	}
	return reason
}
