// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// nodeCount is enough for pods that are spread, and for a DaemonSet on some nodes.
	nodeCount = 4
	// fieldManager owns what this package applies.
	fieldManager = "modelbox-local"

	settleEvery = 200 * time.Millisecond
)

// settle waits until the API server is ready, adds the nodes and waits until pods can
// run: each node is Ready, kwok has renewed its lease since the given time, and the
// default service account exists, without which no pod is admitted.
func (c *Cluster) settle(ctx context.Context, since time.Time) error {
	config, err := c.Config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return checkReady(ctx, client) },
		func(ctx context.Context) error { return applyNodes(ctx, client) },
		func(ctx context.Context) error { return checkPodsCanRun(ctx, client, since) },
	} {
		if err := retry(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// retry calls step until it succeeds or ctx ends, and returns its last error.
// While a control plane starts, every request may fail, so no error is final.
func retry(ctx context.Context, step func(context.Context) error) error {
	ticker := time.NewTicker(settleEvery)
	defer ticker.Stop()
	for {
		err := step(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}

func checkReady(ctx context.Context, client kubernetes.Interface) error {
	if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
		return fmt.Errorf("checking that the API server is ready: %w", err)
	}
	return nil
}

func checkPodsCanRun(ctx context.Context, client kubernetes.Interface, since time.Time) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	if ready := countReady(nodes.Items); ready < nodeCount {
		return fmt.Errorf("%d of %d nodes are Ready", ready, nodeCount)
	}
	leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the nodes' leases: %w", err)
	}
	if renewed := countRenewed(leases.Items, since); renewed < nodeCount {
		return fmt.Errorf("kwok has taken over %d of %d nodes", renewed, nodeCount)
	}
	if _, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{}); err != nil {
		return fmt.Errorf("reading the default service account: %w", err)
	}
	return nil
}

// applyNodes applies the simulated nodes. When it runs again, it keeps the fields of
// other field managers, such as the status and additional labels.
func applyNodes(ctx context.Context, client kubernetes.Interface) error {
	for i := range nodeCount {
		_, err := client.CoreV1().Nodes().Apply(ctx, node(i+1), metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("adding a node: %w", err)
		}
	}
	return nil
}

// node returns the nth simulated node, starting with 1. kwok gives it a status with a
// very high capacity for pods; each node has its own large range of pod addresses.
func node(n int) *corev1ac.NodeApplyConfiguration {
	name := fmt.Sprintf("node-%d", n)
	podCIDR := fmt.Sprintf("10.%d.0.0/16", n)
	return corev1ac.Node(name).
		WithAnnotations(map[string]string{"kwok.x-k8s.io/node": "fake"}).
		WithLabels(map[string]string{
			corev1.LabelHostname:            name,
			corev1.LabelOSStable:            "linux",
			corev1.LabelArchStable:          "amd64",
			"node-role.kubernetes.io/agent": "",
		}).
		WithSpec(corev1ac.NodeSpec().WithPodCIDR(podCIDR).WithPodCIDRs(podCIDR))
}

// countReady counts the nodes that are Ready.
func countReady(nodes []corev1.Node) int {
	ready := 0
	for _, n := range nodes {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready++
			}
		}
	}
	return ready
}

// countRenewed counts the leases that were renewed at or after since.
func countRenewed(leases []coordinationv1.Lease, since time.Time) int {
	renewed := 0
	for _, lease := range leases {
		if at := lease.Spec.RenewTime; at != nil && !at.Time.Before(since) {
			renewed++
		}
	}
	return renewed
}
