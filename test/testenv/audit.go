// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// policy logs each request once, after its response, without bodies.
const policy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// Request is a request that the API server has responded to.
type Request struct {
	Verb        string
	Group       string
	Resource    string
	Subresource string
	Namespace   string
	Name        string
	Code        int
}

// String returns a short form such as "patch modelboxes/status 200".
func (r Request) String() string {
	return fmt.Sprintf("%s %s %d", r.Verb, r.path(), r.Code)
}

// path returns the resource and the subresource, as RBAC names them.
func (r Request) path() string {
	if r.Subresource == "" {
		return r.Resource
	}
	return r.Resource + "/" + r.Subresource
}

// Refused reports whether the user had no permission for the request.
func (r Request) Refused() bool { return r.Code == http.StatusForbidden }

// Writes reports whether the request is a write.
func (r Request) Writes() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

type auditEvent struct {
	Stage     string                                                            `json:"stage"`
	Verb      string                                                            `json:"verb"`
	User      struct{ Username string }                                         `json:"user"`
	ObjectRef struct{ APIGroup, Resource, Subresource, Namespace, Name string } `json:"objectRef"`
	Response  struct{ Code int }                                                `json:"responseStatus"`
}

// configure configures the API server: an audit log, a larger network for Services, and
// an admission plugin that only some clusters have.
func (e *Env) configure() error {
	policyFile := filepath.Join(e.dir, "audit-policy.yaml")
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		return err
	}
	e.env.ControlPlane.GetAPIServer().Configure().
		Set("audit-policy-file", policyFile).
		Set("audit-log-path", e.audit.path).
		Set("audit-log-mode", "blocking-strict").
		// The log is read as one file; the API server's own limit is 100 MB.
		Set("audit-log-maxsize", "100000").
		// OpenShift has this plugin. A user who sets blockOwnerDeletion in an owner
		// reference needs the permission to update the owner's finalizers.
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement").
		// envtest's own range has addresses for 254 Services.
		Set("service-cluster-ip-range", "10.96.0.0/12")
	return nil
}

// Requests returns the requests of a user, in the order of their responses. A watch is
// included from its start on.
func (e *Env) Requests(user string) ([]Request, error) {
	requests, err := e.audit.of(user)
	if err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	return requests, nil
}

// auditLog is the API server's audit log. Only new lines are read, so calls are cheap.
type auditLog struct {
	path string

	mu     sync.Mutex
	offset int64
	byUser map[string][]Request
}

func (l *auditLog) of(user string) ([]Request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	if err := l.readOn(bufio.NewReader(file)); err != nil {
		return nil, err
	}
	return slices.Clip(l.byUser[user]), nil
}

func (l *auditLog) readOn(lines *bufio.Reader) error {
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // The last line may be incomplete.
		}
		if err != nil {
			return err
		}
		if err := l.add(line); err != nil {
			return err
		}
		l.offset += int64(len(line))
	}
}

func (l *auditLog) add(line []byte) error {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return err
	}
	// A watch is logged twice, when it starts and when it ends.
	if event.Stage == "ResponseComplete" && event.Verb == "watch" {
		return nil
	}
	object, user := event.ObjectRef, event.User.Username
	l.byUser[user] = append(l.byUser[user], Request{
		Verb: event.Verb, Group: object.APIGroup, Resource: object.Resource, Subresource: object.Subresource,
		Namespace: object.Namespace, Name: object.Name, Code: event.Response.Code,
	})
	return nil
}
