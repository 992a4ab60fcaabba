// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
)

// testAdmission returns an error unless the API server calls the webhook: it is what "helm test"
// runs. It asks for a ModelBox that only the webhook refuses, and in a dry run, so that nothing is
// created whatever the answer is. For a moment after an install the API server does not trust the
// webhook's certificate yet, so it asks again until ctx is done.
func testAdmission(ctx context.Context, c client.Client, namespace string) error {
	var answer error
	err := wait.PollUntilContextCancel(ctx, 2*time.Second, true, func(ctx context.Context) (bool, error) {
		answer = c.Create(context.WithoutCancel(ctx), &modelv1.ModelBox{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "test"},
			Spec:       modelv1.ModelBoxSpec{Image: "not an image"},
		}, client.DryRunAll)
		return answer == nil || apierrors.IsInvalid(answer) && strings.Contains(answer.Error(), "spec.image"), nil
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
