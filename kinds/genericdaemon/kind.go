// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package genericdaemon

import (
	mydomainv1beta1 "github.com/modelbox-operator/modelbox-operator/api/mydomain/v1beta1"
	"github.com/modelbox-operator/modelbox-operator/kinds"
)

// Kind returns the defaults and the rules of Genericdaemons, which both processes run.
func Kind() kinds.Kind[mydomainv1beta1.Genericdaemon] {
	return kinds.Kind[mydomainv1beta1.Genericdaemon]{
		GVK:      mydomainv1beta1.SchemeGroupVersion.WithKind("Genericdaemon"),
		Default:  Default,
		Validate: Validate,
		Warn:     Warn,
	}
}
