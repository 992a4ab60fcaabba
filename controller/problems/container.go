// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/modelbox-operator/modelbox-operator/kinds/modelsource"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// recentExit is how long after an exit a container that is not ready again counts as one
	// that crashes. kubelet's longest pause between two starts is 5 minutes; in these phases
	// the container is waiting, running and terminated in turn, and has one problem.
	recentExit = 10 * time.Minute
	// longCreation is how long kubelet may create a container before that is a problem.
	longCreation = time.Minute
	// maxCommand bounds what is quoted of a probe's command.
	maxCommand = 100
)

// container is a container of a pod, with its status.
type container struct {
	pod    *corev1.Pod
	spec   *corev1.Container // nil if the pod has none of this name.
	status *corev1.ContainerStatus
	init   bool
	now    time.Time
}

// problem returns the problem of a container, nil if it has none.
func (c *container) problem() *finding {
	state := &c.status.State
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
	case c.crashedRecently():
		return c.crashed(c.status.LastTerminationState.Terminated)
	case state.Running != nil:
		return c.running(state.Running)
	}
	return nil
}

// runsOnce reports whether it is an init container that is to complete, and no sidecar.
func (c *container) runsOnce() bool {
	return c.init && (c.spec == nil || ptr.Deref(c.spec.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways)
}

func (c *container) crashedRecently() bool {
	last := c.status.LastTerminationState.Terminated
	return last != nil && c.status.RestartCount > 0 && c.now.Sub(last.FinishedAt.Time) < recentExit
}

func (c *container) waiting(state *corev1.ContainerStateWaiting) *finding {
	last := c.status.LastTerminationState.Terminated
	switch state.Reason {
	case "", reasonPodInitializing:
		return nil // An init container has the problem.
	case reasonContainerCreating:
		return c.creating()
	case reasonCrashLoopBackOff, reasonRunContainerError:
		if last != nil {
			return c.crashed(last)
		}
	case reasonImagePullBackOff, "ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed":
		return c.notPulled(state)
	}
	return c.finding(reasonOr(state.Reason, reasonPending), c.clean(state.Message))
}

// creating returns the problem that kubelet has been creating a container for a long time. It
// knows the reason, such as a volume that cannot be mounted, and says it only in an event.
func (c *container) creating() *finding {
	since := earliest(ptr.Deref(c.pod.Status.StartTime, metav1.Time{}), c.pod.CreationTimestamp)
	if since.IsZero() || c.now.Sub(since.Time) < longCreation {
		return nil
	}
	f := c.finding(reasonContainerCreating,
		"kubelet pulls the image, or waits for a volume or for the network of the pod; the events of the pod say which (kubectl describe pod)")
	f.Since = since
	return f
}

// backOff is what kubelet writes before the answer of the registry while it waits for the
// next attempt. Before Kubernetes 1.32, the answer is missing then.
var backOff = regexp.MustCompile(`^Back-off pulling image "[^"]*"(: )?(ErrImagePull: )?`)

// notPulled returns the problem that an image cannot be pulled. An attempt and the pause after
// it have different reasons, which alternate, and the same problem.
func (c *container) notPulled(state *corev1.ContainerStateWaiting) *finding {
	answer := backOff.ReplaceAllString(state.Message, "")
	switch {
	case answer == "":
		answer = state.Message // Found.settle replaces it.
	case state.Reason != reasonImagePullBackOff && state.Reason != "ErrImagePull":
		answer = state.Reason + ": " + answer
	}
	return c.finding(reasonImagePullBackOff, c.clean(answer))
}

// crashed returns the problem of a container that has exited.
func (c *container) crashed(last *corev1.ContainerStateTerminated) *finding {
	reason, message := reasonCrashLoopBackOff, exitOf(last)
	if last.Reason == reasonOOMKilled {
		reason, message = reasonOOMKilled, c.memoryLimit()+"; "+message
	}
	if line := c.clean(lastLine(last.Message)); line != "" {
		message += ": " + line
	}
	if fetched := c.clean(lastLine(last.Message)); c.fetches() && fetched != "" {
		reason, message = reasonModelFetchFailed, fetched
	}
	f := c.finding(reason, message)
	f.restarts = c.status.RestartCount
	return f
}

// fetches reports whether it is the init container that fetches the model of a ModelBox. Its
// termination message says why it failed.
func (c *container) fetches() bool { return c.init && c.spec != nil && modelsource.IsFetcher(c.spec) }

var signals = map[int32]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	11: "SIGSEGV", 13: "SIGPIPE", 15: "SIGTERM",
}

// exitOf returns the exit code, and the signal or kubelet's reason where they say more.
func exitOf(last *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", last.ExitCode)
	switch signal := cmp.Or(last.Signal, last.ExitCode-128); {
	case signals[signal] != "":
		text += " (" + signals[signal] + ")"
	case last.Signal != 0:
		text += fmt.Sprintf(" (signal %d)", last.Signal)
	case last.Reason != "Error":
		if reason := reasonOr(last.Reason, ""); reason != "" {
			text += " (" + reason + ")"
		}
	}
	return text
}

func (c *container) memoryLimit() string {
	if c.spec != nil {
		if limit, ok := c.spec.Resources.Limits[corev1.ResourceMemory]; ok {
			return "the container needed more than its memory limit of " + limit.String()
		}
	}
	return "the pod or the node ran out of memory, and the container has no memory limit of its own"
}

// running returns the problem of a container that runs and is not ready.
func (c *container) running(state *corev1.ContainerStateRunning) *finding {
	var f *finding
	switch {
	case c.fetches():
		f = c.finding(reasonFetchingModel, "the model is being fetched; the log of the container has the progress")
	case c.runsOnce():
		f = c.finding(reasonPodInitializing, "the init container has not completed yet")
	case c.spec == nil:
		return nil
	case !ptr.Deref(c.status.Started, false) && c.spec.StartupProbe != nil:
		f = c.finding(reasonNotStarted, "the startup probe has not succeeded yet: "+c.action(c.spec.StartupProbe))
	case ptr.Deref(c.status.Started, false) && c.spec.ReadinessProbe != nil:
		f = c.finding(reasonNotReady, "the readiness probe does not succeed: "+c.action(c.spec.ReadinessProbe))
		return f
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
		text = strings.TrimSpace(fmt.Sprintf("grpc :%d %s", probe.GRPC.Port, ptr.Deref(probe.GRPC.Service, "")))
	case probe.Exec != nil:
		text = "exec " + strings.Join(probe.Exec.Command[:min(len(probe.Exec.Command), maxCommand)], " ")
	}
	return rules.Cut(c.clean(text), maxCommand)
}

func (c *container) clean(message string) string { return clean(message, c.pod.Name) }

func (c *container) finding(reason, message string) *finding {
	f := newFinding(c.pod, reason, message)
	f.Container = rules.Cut(oneLine(c.status.Name), maxContainer)
	return f
}
