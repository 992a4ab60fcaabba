// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Service is the Service that the workload asks for, or nil if it has no ports.
// It says nothing of clusterIP, nor of a nodePort that was not asked for: the
// cluster chooses them once, and what is not said is not changed.
func (w *Workload) Service() *corev1.Service {
	if len(w.Ports) == 0 {
		return nil
	}
	return &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service"},
		ObjectMeta: w.ObjectMeta(),
		Spec: corev1.ServiceSpec{
			Type:     w.ServiceType,
			Selector: w.Selector(),
			Ports:    w.servicePorts(),
		},
	}
}

func (w *Workload) servicePorts() []corev1.ServicePort {
	ports := make([]corev1.ServicePort, 0, len(w.Ports))
	for i := range w.Ports {
		port := &w.Ports[i]
		ports = append(ports, corev1.ServicePort{
			Name:        port.Name,
			Protocol:    port.ProtocolOrDefault(),
			AppProtocol: port.AppProtocolOrNil(),
			Port:        port.Port,
			TargetPort:  port.TargetPortOrDefault(),
			NodePort:    port.NodePort,
		})
	}
	return ports
}

// Address is where the first port is served within the cluster, or "" without
// ports.
func (w *Workload) Address() string {
	if len(w.Ports) == 0 {
		return ""
	}
	return fmt.Sprintf("%s.%s.svc:%d", w.Owner.GetName(), w.Owner.GetNamespace(), w.Ports[0].Port)
}
