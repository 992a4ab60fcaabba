// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
	extensionv1 "github.com/modelbox-operator/modelbox-operator/api/extension/v1"
	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	mtsrev1 "github.com/modelbox-operator/modelbox-operator/api/mtsre/v1"
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
)

// invalid is neither an image nor a schedule, which the schema does not know.
const invalid = "not valid"

// refused are objects of each kind that the webhook refuses because of that, and nothing else does.
var refused = map[string]client.Object{
	"ModelBox":      &modelv1.ModelBox{Spec: modelv1.ModelBoxSpec{Image: invalid}},
	"App":           &appv1.App{Spec: appv1.AppSpec{Image: invalid}},
	"Genericdaemon": &mydomainv1beta1.Genericdaemon{Spec: mydomainv1beta1.GenericdaemonSpec{Image: invalid}},
	"UnitedDeployment": &extensionv1.UnitedDeployment{Spec: extensionv1.UnitedDeploymentSpec{
		DeploymentName: "test", Replicas: new(int32(1)), Schedules: []modelv1.Schedule{{Name: "test", Schedule: invalid}},
	}},
	"Eru": &mtsrev1.Eru{Spec: mtsrev1.EruSpec{Schedule: invalid}},
}

// testAdmission returns an error unless the API server calls the webhook for a kind: it is what
// "helm test" runs. It asks for an object that only the webhook refuses, and in a dry run, so that
// nothing is created whatever the answer is. For a moment after an install the API server does not
// trust the webhook's certificate yet, so it asks again until ctx is done.
func testAdmission(ctx context.Context, c client.Client, namespace, kind string) error {
	obj := refused[kind].DeepCopyObject().(client.Object)
	obj.SetNamespace(namespace)
	obj.SetName("test")
	var answer error
	err := wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) {
		answer = c.Create(context.WithoutCancel(ctx), obj, client.DryRunAll)
		return answer == nil || apierrors.IsInvalid(answer) && strings.Contains(answer.Error(), strconv.Quote(invalid)), nil
	})
	switch {
	case err != nil:
		return fmt.Errorf("the API server has no answer of the webhook: %w", answer)
	case answer == nil:
		return errors.New("the API server has admitted what the webhook refuses, so it does not call the webhook")
	}
	fmt.Println("the webhook answers:", answer)
	return nil
}
