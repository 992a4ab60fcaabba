// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	modelv1 "github.com/modelbox-operator/modelbox-operator/api/model/v1"
	"github.com/modelbox-operator/modelbox-operator/bench/admission"
	"github.com/modelbox-operator/modelbox-operator/bench/controlplane"
	"github.com/modelbox-operator/modelbox-operator/bench/implementation"
	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
	"github.com/modelbox-operator/modelbox-operator/bench/report"
	"github.com/modelbox-operator/modelbox-operator/hack/local/freeport"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// webhook measures the cost of an admission in a separate process that calls the
// handlers, and counts how often the webhooks are called during the lifecycle of an
// object.
func (b *Bench) webhook(ctx context.Context) error {
	const group = "webhook"
	for round := range b.Rounds {
		b.logf("webhook: round %d of %d: the handlers", round+1, b.Rounds)
		if err := b.admissions(ctx, group, round%2 == 1); err != nil {
			return err
		}
	}
	b.logf("webhook: calls during the lifecycle of an object")
	calls, err := b.calls(ctx)
	if err != nil {
		return err
	}
	b.Add(report.Row{
		Group: group, Name: "CPU per admission / typed defaulter + validator", Limit: 0.2,
		Values: report.Ratios(b.Values(group, "ours", admission.CPU), b.Values(group, "typed", admission.CPU)),
		Note:   "both handlers, from the bytes of the request to those of the response, without TLS and HTTP; with the same defaults and validation rules",
	})
	b.Add(report.Row{
		Group: group, Name: "allocations, changed 1.6 kB object", Limit: 60, Values: b.Values(group, "ours", admission.Allocations),
		Note: "of the mutating handler; the moonshot is 40",
	})
	b.Add(report.Row{
		Group: group, Name: admission.AllocationsFull, Limit: 110, Values: b.Values(group, "ours", admission.AllocationsFull),
		Note: "of the mutating handler; the object of the row above, and every field that model servers need",
	})
	b.Add(report.Row{
		Group: group, Name: "calls per webhook over the life of an object", Limit: 2, Values: calls,
		Note: "create, 10 status changes, 3 of metadata, 1 of spec, delete",
	})
	return nil
}

func (b *Bench) admissions(ctx context.Context, group string, backwards bool) error {
	sides := []string{"ours", "typed"}
	if backwards {
		sides = []string{"typed", "ours"}
	}
	for _, side := range sides {
		result, err := admission.InProcess(ctx, side)
		if err != nil {
			return err
		}
		b.Record(group, side, admission.CPU, "µs", result.CPU)
		b.Record(group, side, admission.Allocations, "", result.Allocations)
		b.Record(group, side, admission.AllocationsFull, "", result.AllocationsFull)
	}
	return nil
}

// webhookServer is a webhook process and the control plane that calls it.
type webhookServer struct {
	controlPlane *controlplane.ControlPlane
	process      *implementation.Process
	metrics      string
	pprof        string
}

// startWebhook starts a control plane with the webhook configurations, and the process
// that they call.
func startWebhook(ctx context.Context) (*webhookServer, error) {
	p, err := controlplane.Start(ctx, controlplane.Options{
		CRDs:     []string{controlplane.OperatorCRDs()},
		Webhooks: []string{filepath.Join(testenv.Root(), "config", "webhook", "generated")},
	})
	if err != nil {
		return nil, err
	}
	s := &webhookServer{controlPlane: p}
	if err := s.start(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *webhookServer) start(ctx context.Context) error {
	addresses, err := freeport.Addresses(3)
	if err != nil {
		return err
	}
	s.metrics, s.pprof = "http://"+addresses[0]+"/metrics", addresses[2]
	local := s.controlPlane.Webhooks()
	s.process, err = implementation.Run(implementation.Webhook, filepath.Join(s.controlPlane.Dir, "webhook.log"),
		"--cert-dir="+local.LocalServingCertDir,
		"--webhook-bind-address="+net.JoinHostPort(local.LocalServingHost, strconv.Itoa(local.LocalServingPort)),
		"--metrics-bind-address="+addresses[0], "--health-probe-bind-address="+addresses[1], "--pprof-bind-address="+addresses[2], "--drain=0s")
	if err != nil {
		return err
	}
	return controlplane.Poll(ctx, 100*time.Millisecond, time.Minute, "waiting for the webhook to be ready", func() (bool, error) {
		return answers("http://" + addresses[1] + "/readyz"), s.process.Alive()
	})
}

func (s *webhookServer) stop() {
	if s.process != nil {
		s.process.Stop()
	}
	_ = s.controlPlane.Stop()
}

func answers(url string) bool {
	response, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// calls counts the calls of the two webhooks during the lifecycle of an object, and
// returns the higher count.
func (b *Bench) calls(ctx context.Context) ([]float64, error) {
	server, err := startWebhook(ctx)
	if err != nil {
		return nil, err
	}
	defer server.stop()
	if err := lifecycle(ctx, server.controlPlane.Client); err != nil {
		return nil, err
	}
	counts, err := scrape(ctx, server.metrics, "modelbox_admission_requests_total")
	if err != nil {
		return nil, err
	}
	byWebhook := map[string]float64{}
	for series, n := range counts {
		for _, webhook := range []string{"mutating", "validating"} {
			if strings.Contains(series, `kind="ModelBox"`) && strings.Contains(series, `webhook="`+webhook+`"`) {
				byWebhook[webhook] += n
			}
		}
	}
	return []float64{max(byWebhook["mutating"], byWebhook["validating"])}, nil
}

// lifecycle creates an object, changes its status 10 times, its metadata 3 times and its
// spec once, and deletes it.
func lifecycle(ctx context.Context, c client.Client) error {
	box := modelboxes.Written(0)
	box.Namespace = modelboxes.Namespace
	if err := client.IgnoreAlreadyExists(c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: modelboxes.Namespace}})); err != nil {
		return err
	}
	steps := []func() error{func() error { return c.Create(ctx, box) }}
	for i := range 10 {
		steps = append(steps, func() error {
			box.Status.Replicas = int32(i + 1)
			return c.Status().Update(ctx, box)
		})
	}
	for i := range 3 {
		steps = append(steps, func() error {
			box.Labels["edit"] = strconv.Itoa(i)
			return c.Update(ctx, box)
		})
	}
	steps = append(steps,
		func() error { return scale(ctx, c, box) },
		func() error { return c.Delete(ctx, box) },
	)
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d of an object's lifecycle: %w", i, err)
		}
	}
	return nil
}

func scale(ctx context.Context, c client.Client, box *modelv1.ModelBox) error {
	box.Spec.Replicas = new(int32(7))
	return c.Update(ctx, box)
}

// scrape reads the series of a metric.
func scrape(ctx context.Context, url, metric string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	series := map[string]float64{}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, ok := cutLast(lines.Text(), " ")
		if !ok || !strings.HasPrefix(name, metric) {
			continue
		}
		if series[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	return series, lines.Err()
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
