// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bufio"
	"context"
	"fmt"
	"strconv"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Requests is how many requests of each category an account has sent. It does not
// include discovery.
type Requests struct {
	// Writes are writes of objects, and Status are writes of the status subresource.
	// Neither includes events and leases.
	Writes, Status, Events, Leases int64
	// Gets and Lists were not served by a cache. Watches includes those that fill one.
	Gets, Lists, Watches int64
}

// Sub returns the requests since an earlier reading.
func (r Requests) Sub(before Requests) Requests {
	return Requests{
		Writes: r.Writes - before.Writes, Status: r.Status - before.Status,
		Events: r.Events - before.Events, Leases: r.Leases - before.Leases,
		Gets: r.Gets - before.Gets, Lists: r.Lists - before.Lists, Watches: r.Watches - before.Watches,
	}
}

// AllWrites returns the writes of objects and their status, without events.
func (r Requests) AllWrites() int64 { return r.Writes + r.Status }

// Reads returns the reads that were not served by a cache.
func (r Requests) Reads() int64 { return r.Gets + r.Lists }

// Total returns all requests except watches and leases.
func (r Requests) Total() int64 { return r.AllWrites() + r.Events + r.Reads() }

func (r Requests) String() string {
	return fmt.Sprintf("%d writes, %d status, %d events, %d gets, %d lists, %d watches, %d leases",
		r.Writes, r.Status, r.Events, r.Gets, r.Lists, r.Watches, r.Leases)
}

// categories are the categories of requests; the first one that matches a request
// counts. With a FlowSchema for each, the API server itself counts the requests. An audit
// log would cost more for the implementations that send more requests.
var categories = []struct {
	name              string
	verbs, groups, of []string
	count             func(*Requests) *int64
}{
	{"leases", all, []string{"coordination.k8s.io"}, all, func(r *Requests) *int64 { return &r.Leases }},
	{"events", all, all, []string{"events"}, func(r *Requests) *int64 { return &r.Events }},
	{"watches", []string{"watch"}, all, all, func(r *Requests) *int64 { return &r.Watches }},
	{"gets", []string{"get"}, all, all, func(r *Requests) *int64 { return &r.Gets }},
	{"lists", []string{"list"}, all, all, func(r *Requests) *int64 { return &r.Lists }},
	{"status", all, all, []string{"modelboxes/status", "erus/status", "boxes/status", "foos/status"}, func(r *Requests) *int64 { return &r.Status }},
	{"writes", all, all, all, func(r *Requests) *int64 { return &r.Writes }},
}

var all = []string{"*"}

// flowSchemas returns FlowSchemas that count the requests of an account. All use the
// priority level "exempt", in which requests are never queued: queueing depends on the
// settings of a cluster and not on the implementations.
func flowSchemas(account string) []*flowcontrolv1.FlowSchema {
	var out []*flowcontrolv1.FlowSchema
	for i, category := range categories {
		out = append(out, &flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: account + "-" + category.name},
			Spec: flowcontrolv1.FlowSchemaSpec{
				MatchingPrecedence:         int32(10 + i),
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: flowcontrolv1.PriorityLevelConfigurationNameExempt},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{
						Kind:           flowcontrolv1.SubjectKindServiceAccount,
						ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: Namespace, Name: account},
					}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: category.verbs, APIGroups: category.groups, Resources: category.of, Namespaces: all, ClusterScope: true,
					}},
				}},
			},
		})
	}
	return out
}

// Requests reads the counts of the API server. That costs the API server about 100 ms of
// CPU time, so it must not be done during a measurement.
func (a *Account) Requests(ctx context.Context) (Requests, error) {
	var out Requests
	clients, err := kubernetes.NewForConfig(a.controlPlane.Config)
	if err != nil {
		return out, err
	}
	stream, err := clients.RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return out, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), `apiserver_flowcontrol_dispatched_requests_total{flow_schema="`+a.Name+`-`)
		if !ok {
			continue
		}
		if err := out.add(rest); err != nil {
			return out, err
		}
	}
	return out, lines.Err()
}

// add parses and adds a line such as: gets",priority_level="exempt"} 7
func (r *Requests) add(line string) error {
	name, _, _ := strings.Cut(line, `"`)
	fields := strings.Fields(line)
	n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
	if err != nil {
		return fmt.Errorf("parsing a count of requests: %w", err)
	}
	for _, category := range categories {
		if category.name == name {
			*category.count(r) += int64(n)
		}
	}
	return nil
}
