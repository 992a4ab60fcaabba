// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/controller/app"
	"github.com/modelbox-operator/modelbox-operator/controller/apply"
	"github.com/modelbox-operator/modelbox-operator/controller/eru"
	"github.com/modelbox-operator/modelbox-operator/controller/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/controller/modelbox"
	"github.com/modelbox-operator/modelbox-operator/controller/problems"
	"github.com/modelbox-operator/modelbox-operator/controller/status"
	"github.com/modelbox-operator/modelbox-operator/controller/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/controller/workload"
)

// reconcilerOf returns the reconciler of a kind, with a writer and a clock.
func reconcilerOf(kind string, writer apply.Writer, clk clock.PassiveClock) reconcile.Reconciler {
	looker := &problems.Diagnoser{Reader: writer.Live, Clock: clk}
	shared := workload.Reconciler{Writer: writer, Clock: clk, Problems: looker}
	switch kind {
	case "ModelBox":
		return status.Recorded[*modelv1.ModelBox](writer.Client, writer.Recorder, &modelbox.Reconciler{Reconciler: shared, Fetcher: models})
	case "UnitedDeployment":
		return status.RecordedWithWriteAhead(writer.Client, writer.Recorder, uniteddeployment.New(unindexed{writer.Client}, writer.Recorder, clk))
	case "Eru":
		return status.RecordedWithWriteAhead(writer.Client, writer.Recorder, &eru.Reconciler{Client: writer.Client, Recorder: writer.Recorder, Clock: clk})
	case "App":
		return status.Recorded[*appv1.App](writer.Client, writer.Recorder, &app.Reconciler{Reconciler: shared})
	}
	return status.Recorded[*mydomainv1beta1.Genericdaemon](writer.Client, writer.Recorder,
		&genericdaemon.Reconciler{Reconciler: shared})
}

// reconcileWith reconciles an object with a client, as a process that has just started does.
func reconcileWith(ctx context.Context, c client.Client, obj client.Object, kind string) error {
	writer := apply.Writer{Client: c, Live: c, Recorder: events.NewFakeRecorder(100)}
	_, err := reconcilerOf(kind, writer, clock.RealClock{}).Reconcile(ctx, requestFor(obj))
	return err
}

func requestFor(obj client.Object) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
}
