// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modelbox reconciles ModelBoxes: each ModelBox owns a Deployment and a Service.
package modelbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/modelbox-operator/modelbox-operator/api"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/models"
	"github.com/modelbox-operator/modelbox-operator/kinds/models/modeluri"
)

// +kubebuilder:rbac:groups=model.github.com,resources=modelboxes,verbs=get;list;watch
// +kubebuilder:rbac:groups=model.github.com,resources=modelboxes/status,verbs=patch
// +kubebuilder:rbac:groups=model.github.com,resources=modelboxes/scale,verbs=patch
// +kubebuilder:rbac:groups=model.github.com,resources=modelboxes/finalizers,verbs=update
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=services,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete

var kind = modelv1.SchemeGroupVersion.WithKind("ModelBox")

// Reconciler reconciles ModelBoxes.
type Reconciler struct {
	workload.Reconciler
}

// SetupWithManager adds the controller for ModelBoxes to a manager.
func SetupWithManager(mgr manager.Manager, shared workload.Shared) error {
	r := &Reconciler{workload.New(mgr, kind, shared)}
	return workload.Setup(mgr, &modelv1.ModelBox{}, r, &r.Reconciler, &appsv1.Deployment{}, &corev1.Service{})
}

// Reconcile applies the children of a ModelBox and sets its status. It runs the defaults and
// the rules of admission again, so that an object which was stored while the webhook was
// away is reconciled in the same way. What the object has no default for stays so: a default
// that is newer than it would restart its pods.
func (r *Reconciler) Reconcile(ctx context.Context, box *modelv1.ModelBox, writer *status.Writer) (reconcile.Result, error) {
	rollout, err := r.Recall(ctx, box, &box.Spec, box.Spec.OnFailedRollout, box.Status.Rollout, &box.Status.Fetcher)
	if err != nil {
		return reconcile.Result{}, err
	}
	modelbox.DefaultStored(box)
	s := workload.NewState(modelbox.Workload(box, r.Fetcher), modelbox.Validate(box), &box.Status.WorkloadStatus, writer)
	s.Rollout = rollout
	return r.Run(ctx, s, r.Scale, r.Build, r.Apply, r.recordFetcher, r.Reread, r.noticeReady, r.Observe, r.RecordRollout, r.Report, r.GiveUp, r.recordModels)
}

// recordFetcher sets status.fetcher of a ModelBox whose children have been applied, as its spec is.
// What was fetched is not known for another pod template.
func (*Reconciler) recordFetcher(_ context.Context, s *workload.State) (time.Duration, error) {
	if !s.Applied || s.Holds() {
		return 0, nil
	}
	now, err := workload.FetcherStatus(s.Workload, s.Pods.Desired.(*appsv1.Deployment))
	if err != nil {
		return 0, err
	}
	into := &s.Owner.(*modelv1.ModelBox).Status
	if now != nil && into.Fetcher != nil && now.TemplateHash == into.Fetcher.TemplateHash {
		now.Revision = into.Fetcher.Revision
	} else {
		into.Model, into.Models = nil, nil
		meta.RemoveStatusCondition(&into.Conditions, status.ConditionModelDiffers)
	}
	into.Fetcher, s.Fetched = now, now
	return 0, nil
}

// noticeReady lets recordModels read the pods again if the number of those that are ready differs
// from the one in status, which Observe has not renewed yet: a pod that has started since may have
// fetched other bytes of a model that is not pinned. All that is remembered is in status, so that a
// process that has just started reads the pods of no object that is as it was. A pod that was
// replaced while no controller was running is therefore noticed only at the next change.
func (*Reconciler) noticeReady(_ context.Context, s *workload.State) (time.Duration, error) {
	ready, into := s.Pods.Live.(*appsv1.Deployment).Status.ReadyReplicas, &s.Owner.(*modelv1.ModelBox).Status
	if into.Fetcher != nil && ready != into.ReadyReplicas && slices.ContainsFunc(s.Models, func(m models.Model) bool { return m.CanChange() }) {
		into.Fetcher.Revision = ""
	}
	if ready < 2 {
		meta.RemoveStatusCondition(&into.Conditions, status.ConditionModelDiffers)
	}
	return 0, nil
}

// recordModels sets what status says of the models, once for each rollout that is complete, and when
// all pods are ready again after noticeReady, from the termination messages in one page of its pods.
// Without a container that fetches, and when it is known, nothing is read. If the pods cannot be
// read, it is tried again.
func (r *Reconciler) recordModels(ctx context.Context, s *workload.State) (again time.Duration, err error) {
	live, into := s.Pods.Live.(*appsv1.Deployment), &s.Owner.(*modelv1.ModelBox).Status
	revision := live.Annotations[api.AnnotationRevision]
	if !s.Applied || r.Problems == nil || into.Fetcher == nil || s.Paused || into.ReadyReplicas == 0 || len(revision) > maxRevision ||
		revision == into.Fetcher.Revision || !meta.IsStatusConditionTrue(into.Conditions, status.ConditionReady) {
		return 0, nil
	}
	pods, err := r.Problems.CurrentPods(ctx, problems.OfDeployment(live))
	if err != nil {
		log.FromContext(ctx).Info("Reading what the pods have fetched failed", "error", err)
		return time.Minute, nil
	}
	fetch := &s.Pods.Desired.(*appsv1.Deployment).Spec.Template.Spec.InitContainers[0]
	into.Fetcher.Revision = revision
	var differ string
	into.Model, into.Models, differ = fetchedBy(s.Models, fetch, pods)
	status.SetModelDiffers(&into.Conditions, differ, s.Owner.GetGeneration(), metav1.NewTime(r.Clock.Now()))
	return 0, nil
}

// The bounds of the schema, and of a termination message that a kubelet reads.
const maxRevision, maxBytes, maxMessage = 20, 1<<53 - 1, 4096

// fetchedBy returns what the first pod that says it credibly says of the models, and what the others
// say differently, "" for nothing. Only pods that serve count: ready ones that are not being deleted.
func fetchedBy(all []models.Model, fetch *corev1.Container, pods []corev1.Pod) (model *modelv1.ModelStatus, named []modelv1.NamedModelStatus, differ string) {
	all = slices.DeleteFunc(slices.Clone(all), func(m models.Model) bool { return !m.From.IsFetched() })
	var said [][]modelv1.ModelStatus
	for i := range pods {
		if of := modelsFromPod(all, fetch, &pods[i]); of != nil && pods[i].DeletionTimestamp == nil && podutil.IsPodReady(&pods[i]) {
			said = append(said, of)
		}
	}
	first := make([]modelv1.ModelStatus, len(all))
	if len(said) > 0 {
		first = said[0]
	}
	for i := range all {
		if all[i].Name == "" {
			model = &first[i]
		} else {
			named = append(named, modelv1.NamedModelStatus{Name: all[i].Name, ModelStatus: first[i]})
		}
	}
	return model, named, differences(all, said)
}

// differences says of which models pods have different digests, and how many pods have each; "" for
// none. A digest that is not known differs from no other one.
func differences(all []models.Model, said [][]modelv1.ModelStatus) string {
	var out []string
	for i := range all {
		pods, known := map[string]int{}, 0
		for _, of := range said {
			if digest := of[i].Digest; digest != "" {
				pods[digest]++
				known++
			}
		}
		if len(pods) < 2 {
			continue
		}
		var each []string
		for _, digest := range slices.Sorted(maps.Keys(pods)) {
			each = append(each, fmt.Sprintf("%s in %d of %d", digest, pods[digest], known))
		}
		what := "spec.model"
		if all[i].Name != "" {
			what = fmt.Sprintf("spec.models %q", all[i].Name)
		}
		out = append(out, what+" is "+strings.Join(each, " and "))
	}
	return strings.Join(out, "; ")
}

var digestText = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// modelsFromPod returns what a pod says of each model, nil if that cannot be believed: another
// program has run in it, or the message is not one of this program for these models.
func modelsFromPod(all []models.Model, fetch *corev1.Container, pod *corev1.Pod) []modelv1.ModelStatus {
	var says modeluri.Message
	if err := json.Unmarshal([]byte(terminationMessage(fetch, pod)), &says); err != nil || len(says.Models) != len(all) {
		return nil
	}
	out := make([]modelv1.ModelStatus, len(all))
	for i := range all {
		m := &says.Models[i]
		if m.Name != all[i].Name || !isValidDigest(m.Digest, m.Bytes, all[i].SHA256) {
			return nil
		}
		out[i] = modelv1.ModelStatus{URI: all[i].URI, Digest: m.Digest, Bytes: m.Bytes}
	}
	return out
}

// terminationMessage returns the termination message of the container that fetches, if it is that
// of the Deployment and has succeeded, and "" otherwise.
func terminationMessage(fetch *corev1.Container, pod *corev1.Pod) string {
	ran := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == fetch.Name && c.Image == fetch.Image && slices.Equal(c.Command, fetch.Command) && slices.Equal(c.Args, fetch.Args)
	})
	ended := slices.IndexFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool {
		end := s.State.Terminated
		return s.Name == fetch.Name && end != nil && end.ExitCode == 0 && len(end.Message) <= maxMessage
	})
	if ran < 0 || ended < 0 {
		return ""
	}
	return pod.Status.InitContainerStatuses[ended].State.Terminated.Message
}

// isValidDigest reports whether the schema has room for a digest and a number of bytes, and the
// digest is that of the spec, if it has one. Both are unknown for a model that an earlier release
// has left in a claim.
func isValidDigest(digest string, bytes int64, want string) bool {
	if digest == "" {
		return bytes == 0
	}
	return digestText.MatchString(digest) && bytes >= 0 && bytes <= maxBytes && (want == "" || digest == "sha256:"+strings.ToLower(want))
}
