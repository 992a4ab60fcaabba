// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package problems

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

const (
	// maxMessage is how much is read of a message, in bytes. What is written to status is bounded
	// there.
	maxMessage = 1024
	// pendingGracePeriod is how long kubelet or the scheduler may need before that is a problem.
	pendingGracePeriod = time.Minute
	// transientPeriod is how long a pod may be unschedulable (during a rollout, what it needs is
	// often that of a pod that is being deleted), how long it may exist after its grace period, and
	// how long a container that was restarted must run until it counts as one that does not crash.
	transientPeriod = 30 * time.Second
	// recentExit is how long after an exit a container that runs and is not ready counts as one
	// that crashes. kubelet's longest pause between two starts is 5 minutes.
	recentExit = 10 * time.Minute
)

// newProblem returns a problem that a pod has since it is not ready. That time does not change when
// a container is restarted.
func newProblem(pod *corev1.Pod, reason, message string) *modelv1.Problem {
	since := pod.CreationTimestamp
	if ready := podutil.GetPodReadyCondition(pod.Status); ready != nil && ready.Status != corev1.ConditionTrue && !ready.LastTransitionTime.IsZero() {
		since = ready.LastTransitionTime
	}
	return &modelv1.Problem{Reason: reason, Message: message, Since: since, Count: 1}
}

// ofPod returns the problem of a pod, nil if it has none.
func ofPod(pod *corev1.Pod, now time.Time) *modelv1.Problem {
	_, scheduled := podutil.GetPodCondition(&pod.Status, corev1.PodScheduled)
	switch {
	case pod.DeletionTimestamp != nil:
		if now.Sub(pod.DeletionTimestamp.Time) < transientPeriod {
			return nil
		}
		return newProblem(pod, "PodNotDeleted", "the pod still exists after its grace period: its node may be down, or it has a finalizer")
	case pod.Status.Phase == corev1.PodSucceeded:
		return nil
	case pod.Status.Phase == corev1.PodFailed: // Evicted, preempted, refused by kubelet. It is replaced.
		f := newProblem(pod, reasonOr(pod.Status.Reason, "PodFailed"), clean(pod.Status.Message))
		f.Count = 0 // There may be another one every second.
		return f
	case pod.Spec.NodeName == "" && isFalse(scheduled):
		return unscheduled(pod, scheduled, now)
	case len(pod.Status.ContainerStatuses) > 0 || len(pod.Status.InitContainerStatuses) > 0:
		return ofContainers(pod, now)
	case now.Sub(pod.CreationTimestamp.Time) < pendingGracePeriod:
		return nil
	}
	message := "kubelet has not started the pod: check that its node is ready"
	if pod.Spec.NodeName == "" {
		message = "no scheduler has placed the pod: check that kube-scheduler runs, and schedulerName"
	}
	return newProblem(pod, reasonPending, message)
}

// unscheduled returns the problem of a pod that the scheduler cannot place, nil for a while.
func unscheduled(pod *corev1.Pod, scheduled *corev1.PodCondition, now time.Time) *modelv1.Problem {
	if now.Sub(scheduled.LastTransitionTime.Time) < transientPeriod {
		return nil
	}
	f := newProblem(pod, reasonOr(scheduled.Reason, reasonPending), clean(scheduled.Message))
	f.Since = scheduled.LastTransitionTime
	return f
}

// ofContainers returns the problem of the first container that has one, before others of one that
// needs intervention.
func ofContainers(pod *corev1.Pod, now time.Time) *modelv1.Problem {
	var first *modelv1.Problem
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	specs := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	allReady := true
	for i := range statuses {
		c := &container{pod: pod, status: &statuses[i], init: i < len(pod.Status.InitContainerStatuses), now: now}
		allReady = allReady && (c.init || c.status.Ready)
		if at := slices.IndexFunc(specs, func(spec corev1.Container) bool { return spec.Name == c.status.Name }); at >= 0 {
			c.spec = specs[at]
		}
		f := c.problem()
		if f != nil && needIntervention.Has(f.Reason) {
			return f
		}
		first = cmp.Or(first, f)
	}
	if ready := podutil.GetPodReadyCondition(pod.Status); first == nil && allReady && isFalse(ready) {
		return newProblem(pod, reasonOr(ready.Reason, "PodNotReady"), cmp.Or(clean(ready.Message), "all containers are ready and the pod is not: check that its node is ready"))
	}
	return first
}

// container is a container of a pod, with its status.
type container struct {
	pod    *corev1.Pod
	spec   corev1.Container // Empty if the pod has none of this name.
	status *corev1.ContainerStatus
	init   bool
	now    time.Time
}

func (c *container) problem() *modelv1.Problem {
	state := &c.status.State
	exit, started := c.recentExit()
	switch {
	case c.status.Ready && state.Terminated == nil && !started:
		return nil
	case state.Waiting != nil:
		return c.waiting(state.Waiting)
	case state.Terminated != nil && c.runsOnce() && state.Terminated.ExitCode == 0:
		return nil
	case state.Terminated != nil:
		return c.crashed(state.Terminated)
	case exit != nil:
		return c.crashed(exit)
	case state.Running == nil:
		return nil
	}
	return c.running()
}

// recentExit returns the last exit of a container that was restarted, nil if that was long ago, and
// whether it has been running only briefly since then: between two crashes, a container without
// probes is ready while it runs.
func (c *container) recentExit() (exit *corev1.ContainerStateTerminated, started bool) {
	last, running := c.status.LastTerminationState.Terminated, c.status.State.Running
	if last == nil || c.status.RestartCount == 0 || c.now.Sub(last.FinishedAt.Time) >= recentExit {
		return nil, false
	}
	return last, running != nil && c.now.Sub(running.StartedAt.Time) < transientPeriod
}

func (c *container) running() *modelv1.Problem {
	switch {
	case c.fetches():
		return c.newProblem(reasonFetchingModel, "the model is being fetched; the log of the container has the progress")
	case c.runsOnce():
		return c.newProblem(reasonPodInitializing, "the init container has not completed yet")
	case c.spec.StartupProbe != nil || c.spec.ReadinessProbe != nil:
		return c.newProblem("NotReady", "the startup or readiness probe has not succeeded; the events of the pod have its answers (kubectl describe pod)")
	}
	return nil // kubelet has not observed it yet.
}

// runsOnce reports whether it is an init container, and no sidecar, which is restarted.
func (c *container) runsOnce() bool {
	return c.init && !podutil.IsRestartableInitContainer(&c.spec)
}

// fetches reports whether it is the init container that fetches the model of a ModelBox. Its
// termination message says why it failed.
func (c *container) fetches() bool { return c.init && models.IsFetcher(&c.spec) }

// backOff is what kubelet writes before the answer of the registry while it waits for the next
// attempt.
var backOff = regexp.MustCompile(`^Back-off pulling image "[^"]*": (ErrImagePull: )?`)

func (c *container) waiting(state *corev1.ContainerStateWaiting) *modelv1.Problem {
	switch state.Reason {
	case "", reasonPodInitializing:
		return nil // An init container has the problem.
	case reasonContainerCreating: // kubelet knows the reason, and says it only in an event.
		if c.now.Sub(c.pod.CreationTimestamp.Time) < pendingGracePeriod {
			return nil
		}
		return c.newProblem(reasonContainerCreating,
			"kubelet pulls the image, or waits for a volume or for the network of the pod; the events of the pod say which (kubectl describe pod)")
	case reasonCrashLoopBackOff, "RunContainerError":
		if last := c.status.LastTerminationState.Terminated; last != nil {
			return c.crashed(last)
		}
	case reasonImagePullBackOff, "ErrImagePull": // They alternate.
		return c.newProblem(reasonImagePullBackOff, clean(backOff.ReplaceAllString(state.Message, "")))
	case "RegistryUnavailable", "SignatureValidationFailed":
		return c.newProblem(reasonImagePullBackOff, state.Reason+": "+clean(state.Message))
	}
	return c.newProblem(reasonOr(state.Reason, reasonPending), clean(state.Message))
}

// rateLimited begins what a fetch says that waits longer than it runs; the time of the next attempt
// follows.
const rateLimited = "[RateLimited] "

// crashed returns the problem of a container that has exited, with the last line of its termination
// message.
func (c *container) crashed(last *corev1.ContainerStateTerminated) *modelv1.Problem {
	text := strings.TrimSpace(last.Message)
	line := clean(text[strings.LastIndexAny(text, "\r\n")+1:])
	if c.fetches() && strings.HasPrefix(line, rateLimited) {
		return c.newProblem(reasonModelRateLimited, line)
	}
	if c.fetches() && line != "" {
		return c.newProblem(reasonModelFetchFailed, line)
	}
	reason, message := reasonCrashLoopBackOff, fmt.Sprintf("exit code %d", last.ExitCode)
	switch said := reasonOr(last.Reason, "Error"); said {
	case "Error":
	case reasonOOMKilled:
		reason = reasonOOMKilled
		if limit, ok := c.spec.Resources.Limits[corev1.ResourceMemory]; ok {
			message = "the container needed more than its memory limit of " + limit.String() + "; " + message
		} else {
			message = "the pod or the node ran out of memory, and the container has no memory limit of its own; " + message
		}
	default:
		message += " (" + said + ")"
	}
	if line != "" {
		message += ": " + line
	}
	return c.newProblem(reason, message)
}

func (c *container) newProblem(reason, message string) *modelv1.Problem {
	f := newProblem(c.pod, reason, message)
	f.Container = clean(c.status.Name)
	return f
}

func isFalse(c *corev1.PodCondition) bool { return c != nil && c.Status == corev1.ConditionFalse }

// colours are what programs write for a terminal.
var colours = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// clean returns a message of the cluster as one line of valid UTF-8 without control characters.
func clean(message string) string {
	message = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, colours.ReplaceAllString(rules.Cut(message, maxMessage), ""))
	return strings.Join(strings.Fields(message), " ")
}

// word is what can be a reason.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,127}$`)

// reasonOr returns a reason of the cluster, or another one if it is not one word.
func reasonOr(reason, otherwise string) string {
	if !word.MatchString(reason) {
		return otherwise
	}
	return reason
}
