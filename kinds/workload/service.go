// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/modelbox-operator/modelbox-operator/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/children"
)

// Service returns the desired Service, nil if there are no ports. It does not set clusterIP,
// and nodePort only where the spec does: the API server allocates them once, and an apply
// leaves alone what it does not contain.
func (w *Workload) Service() *corev1.Service {
	if len(w.Ports) == 0 {
		return nil
	}
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service"},
		ObjectMeta: w.with(w.Optional.ServiceMetadata),
		Spec: corev1.ServiceSpec{
			Type:     w.ServiceType,
			Selector: w.Selector(),
			Ports:    w.servicePorts(),
		},
	}
	service.Name = w.serviceName()
	children.SetService(w.Optional.Service, &service.Spec)
	return service
}

func (w *Workload) serviceName() string { return kinds.ChildName(w.Owner, &corev1.Service{}) }

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
