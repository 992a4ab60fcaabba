// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plane

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

// Requests is how many requests of each sort an account has made. Discovery is
// not among them.
type Requests struct {
	// Writes are those of objects, Status those of the status subresource; neither
	// holds events and leases.
	Writes, Status, Events, Leases int64
	// Gets and Lists went past every cache; Watches includes those that fill one.
	Gets, Lists, Watches int64
}

// Sub is what was made since.
func (r Requests) Sub(before Requests) Requests {
	return Requests{
		Writes: r.Writes - before.Writes, Status: r.Status - before.Status,
		Events: r.Events - before.Events, Leases: r.Leases - before.Leases,
		Gets: r.Gets - before.Gets, Lists: r.Lists - before.Lists, Watches: r.Watches - before.Watches,
	}
}

// AllWrites are the writes of objects and their status: what a change costs, told
// apart from what is said about it.
func (r Requests) AllWrites() int64 { return r.Writes + r.Status }

// Reads are the requests that no cache answered.
func (r Requests) Reads() int64 { return r.Gets + r.Lists }

// Total is all of them but watches and leases.
func (r Requests) Total() int64 { return r.AllWrites() + r.Events + r.Reads() }

func (r Requests) String() string {
	return fmt.Sprintf("%d writes, %d status, %d events, %d gets, %d lists, %d watches, %d leases",
		r.Writes, r.Status, r.Events, r.Gets, r.Lists, r.Watches, r.Leases)
}

// sorts are the sorts of requests that are told apart, the first that matches
// counts. A FlowSchema for each lets the API server itself do the counting,
// without a log that it would have to write and that would slow down most
// whoever asks most.
var sorts = []struct {
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

// flowSchemas count the requests of an account. All go to the level that nothing
// is held up on: who is queued for how long is a matter of a cluster's settings,
// not of the contestants.
func flowSchemas(account string) []*flowcontrolv1.FlowSchema {
	var out []*flowcontrolv1.FlowSchema
	for i, sort := range sorts {
		out = append(out, &flowcontrolv1.FlowSchema{
			ObjectMeta: metav1.ObjectMeta{Name: account + "-" + sort.name},
			Spec: flowcontrolv1.FlowSchemaSpec{
				MatchingPrecedence:         int32(10 + i),
				PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: flowcontrolv1.PriorityLevelConfigurationNameExempt},
				Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
					Subjects: []flowcontrolv1.Subject{{
						Kind:           flowcontrolv1.SubjectKindServiceAccount,
						ServiceAccount: &flowcontrolv1.ServiceAccountSubject{Namespace: Namespace, Name: account},
					}},
					ResourceRules: []flowcontrolv1.ResourcePolicyRule{{
						Verbs: sort.verbs, APIGroups: sort.groups, Resources: sort.of, Namespaces: all, ClusterScope: true,
					}},
				}},
			},
		})
	}
	return out
}

// Requests reads the API server's count. That costs the API server some 100 ms of
// CPU, so it has no place inside of what is timed.
func (a *Account) Requests(ctx context.Context) (Requests, error) {
	var out Requests
	clients, err := kubernetes.NewForConfig(a.plane.Config)
	if err != nil {
		return out, err
	}
	stream, err := clients.RESTClient().Get().AbsPath("/metrics").Stream(ctx)
	if err != nil {
		return out, fmt.Errorf("asking for the API server's metrics: %w", err)
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

// add adds a line such as: gets",priority_level="exempt"} 7
func (r *Requests) add(line string) error {
	name, _, _ := strings.Cut(line, `"`)
	fields := strings.Fields(line)
	n, err := strconv.ParseFloat(fields[len(fields)-1], 64)
	if err != nil {
		return fmt.Errorf("reading a count of requests: %w", err)
	}
	for _, sort := range sorts {
		if sort.name == name {
			*sort.count(r) += int64(n)
		}
	}
	return nil
}
