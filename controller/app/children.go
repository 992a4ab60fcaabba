// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	appv1 "github.com/modelbox-operator/modelbox-operator/api/app/v1"
)

// Children returns the desired Deployment and Service of an App that has its defaults and no
// errors. It is pure.
func Children(obj *appv1.App) ([]client.Object, error) { return workloadOf(obj).Children() }
