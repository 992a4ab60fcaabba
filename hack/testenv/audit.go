// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// policy writes each request down once, when it was answered, without bodies.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Request is one request that the API server answered.
type Request struct {
	Verb        string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Code        int
}

// String is the request in a word: "patch modelboxes/status 200".
func (r Request) String() string {
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return fmt.Sprintf("%s %s %d", r.Verb, resource, r.Code)
}

// Writes tells whether the request may have changed something.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

type auditEvent struct {
	Stage     string                                                  `json:"stage"`
	Verb      string                                                  `json:"verb"`
	User      struct{ Username string }                               `json:"user"`
	ObjectRef struct{ Resource, Subresource, Namespace, Name string } `json:"objectRef"`
	Response  struct{ Code int }                                      `json:"responseStatus"`
}

// configure sets up the API server: an audit log at path, and room for Services.
func (e *Env) configure(path string) error {
	policyFile := filepath.Join(e.dir, "audit-policy.yaml")
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		return err
	}
	e.env.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policyFile).
		Set("audit-log-path", path).
		Set("audit-log-mode", "blocking-strict").
		// envtest's own range has room for 254 Services.
		Set("service-cluster-ip-range", "10.96.0.0/12")
	return nil
}

// Requests are the requests of a user, in the order of their answers. A watch is
// among them from its start on.
func (e *Env) Requests(user string) ([]Request, error) {
	file, err := os.Open(e.audit)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	defer func() { _ = file.Close() }()
	var out []Request
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event auditEvent
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			break // The last line may be half written.
		}
		// A watch is answered twice, when it starts and when it ends.
		if event.User.Username != user || event.Stage == "ResponseComplete" && event.Verb == "watch" {
			continue
		}
		out = append(out, Request{
			Verb: event.Verb, Resource: event.ObjectRef.Resource, Subresource: event.ObjectRef.Subresource,
			Namespace: event.ObjectRef.Namespace, Name: event.ObjectRef.Name, Code: event.Response.Code,
		})
	}
	return out, lines.Err()
}
