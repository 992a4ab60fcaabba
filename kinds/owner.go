// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChildName returns the name of the child of an owner that has the type of another object.
func ChildName(owner, child Object) string {
	named, ok := owner.(interface{ ServiceName() string })
	if _, isService := child.(*corev1.Service); ok && isService {
		return named.ServiceName()
	}
	return owner.GetName()
}

// NameConflict says that an object of the name of a child exists, and that another object controls
// it, or none.
func NameConflict(live Object) string {
	held := "has no controller"
	if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
		held = "is controlled by " + controller.Kind + "/" + controller.Name
	}
	return fmt.Sprintf("%s %q already exists and %s: it is not changed; delete or rename it, or give this object another name",
		KindOf(live), live.GetName(), held)
}
