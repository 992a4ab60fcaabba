// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/kinds/rules"
)

// ClaimRisks says in sentences what a rolling update does with the claims of a Deployment, whose access
// modes it reads. Nothing is known of a claim that does not exist, or may not be read.
func ClaimRisks(ctx context.Context, c client.Reader, d *appsv1.Deployment) (out []string) {
	modes := map[string][]string{}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		claim, name := &corev1.PersistentVolumeClaim{}, v.PersistentVolumeClaim.ClaimName
		if c.Get(ctx, client.ObjectKey{Namespace: d.Namespace, Name: name}, claim) == nil {
			modes[name] = nil
			for _, mode := range claim.Spec.AccessModes {
				modes[name] = append(modes[name], string(mode))
			}
		}
	}
	for _, risk := range rules.Risks(d, modes) {
		if risk.Type == rules.ClaimRisk {
			out = append(out, "persistentvolumeclaim/"+risk.Name+" "+risk.Message)
		}
	}
	return out
}
