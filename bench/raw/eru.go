// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
)

// erus returns the two writes for each Eru: the restart of its Deployment, and the
// Eru's status.
func (c *clients) erus(ctx context.Context, slot string) ([]job, error) {
	at, err := time.Parse(time.RFC3339, slot)
	if err != nil {
		return nil, err
	}
	erus, err := c.ours.MtsreV1().Erus(modelboxes.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	deployments, err := c.kube.AppsV1().Deployments(modelboxes.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byName := map[string]*appsv1.Deployment{}
	for i := range deployments.Items {
		byName[deployments.Items[i].Name] = &deployments.Items[i]
	}
	var jobs []job
	for i := range erus.Items {
		eru := &erus.Items[i]
		jobs = append(jobs, func(ctx context.Context) error { return c.restart(ctx, eru, byName[eru.Name], at) })
	}
	return jobs, nil
}

func (c *clients) restart(ctx context.Context, eru *mtsrev1.Eru, target *appsv1.Deployment, slot time.Time) error {
	body := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q},"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`,
		target.UID, target.ResourceVersion, "kubectl.kubernetes.io/restartedAt", slot.UTC().Format(time.RFC3339))
	if _, err := c.kube.AppsV1().Deployments(target.Namespace).Patch(ctx, target.Name, types.MergePatchType, body,
		metav1.PatchOptions{FieldManager: "raw"}); err != nil {
		return err
	}
	status, err := afterRestart(eru, slot)
	if err != nil {
		return err
	}
	_, err = c.ours.MtsreV1().Erus(eru.Namespace).Patch(ctx, eru.Name, types.MergePatchType, status, metav1.PatchOptions{}, "status")
	return err
}

// afterRestart returns the status patch after a restart, with a new history entry and
// the next scheduled time.
func afterRestart(eru *mtsrev1.Eru, slot time.Time) ([]byte, error) {
	next := metav1.NewTime(slot.AddDate(1, 0, 0))
	entry := mtsrev1.EruHistory{Slot: metav1.NewTime(slot), Result: mtsrev1.EruRestarted, StartedAt: new(metav1.Now())}
	conditions := append([]metav1.Condition(nil), eru.Status.Conditions...)
	meta.SetStatusCondition(&conditions, metav1.Condition{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "Scheduled", ObservedGeneration: eru.Generation,
		Message: fmt.Sprintf("Deployment %q is restarted next for %s", eru.Name, next.UTC().Format(time.RFC3339)),
	})
	return json.Marshal(map[string]any{
		"metadata": map[string]string{"resourceVersion": eru.ResourceVersion},
		"status": map[string]any{
			"lastScheduleTime": entry.Slot, "nextScheduleTime": next, "conditions": conditions,
			"history": append([]mtsrev1.EruHistory{entry}, eru.Status.History...),
		},
	})
}
