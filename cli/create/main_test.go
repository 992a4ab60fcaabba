// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package create_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/modelbox-operator/modelbox-operator/cli/create"
	"github.com/modelbox-operator/modelbox-operator/cli/kinds"
	"github.com/modelbox-operator/modelbox-operator/kinds/app"
	"github.com/modelbox-operator/modelbox-operator/kinds/eru"
	"github.com/modelbox-operator/modelbox-operator/kinds/genericdaemon"
	"github.com/modelbox-operator/modelbox-operator/kinds/modelbox"
	"github.com/modelbox-operator/modelbox-operator/kinds/uniteddeployment"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
	"github.com/modelbox-operator/modelbox-operator/webhook/admission"
)

// apiServer is the real one, with the webhooks of the five kinds.
var apiServer server

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	log.SetLogger(logr.Discard())
	env, err := testenv.Start(testenv.Options{Webhooks: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer func() { cancel(); _ = env.Stop() }()
	if err := apiServer.start(ctx, env); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

type server struct {
	client *http.Client
	host   string
}

// start starts the webhooks, and waits until the API server calls them.
func (s *server) start(ctx context.Context, env *testenv.Env) error {
	local := env.Webhooks
	mgr, err := manager.New(env.Config, manager.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: local.LocalServingHost, Port: local.LocalServingPort, CertDir: local.LocalServingCertDir,
		}),
	})
	if err != nil {
		return err
	}
	admission.Register(mgr.GetWebhookServer(), modelbox.Kind())
	admission.Register(mgr.GetWebhookServer(), app.Kind())
	admission.Register(mgr.GetWebhookServer(), genericdaemon.Kind())
	admission.Register(mgr.GetWebhookServer(), uniteddeployment.Kind())
	admission.Register(mgr.GetWebhookServer(), eru.Kind())
	go func() { _ = mgr.Start(ctx) }()
	cfg := rest.CopyConfig(env.Config)
	cfg.QPS = -1
	s.host = strings.TrimSuffix(cfg.Host, "/")
	if s.client, err = rest.HTTPClientFor(cfg); err != nil {
		return err
	}
	return s.wait()
}

// wait waits until each kind's webhook refuses what the schema accepts.
func (s *server) wait() error {
	deadline := time.Now().Add(30 * time.Second)
	for _, kind := range kinds.All {
		body := object(kind, "Web.Box", map[string]any{"image": "a:1", "deploymentName": "a", "replicas": 1})
		for {
			_, err := s.create(kind, create.Request{Body: body, Namespace: "default", Validation: "Ignore"})
			if err.Status().Code == http.StatusUnprocessableEntity {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("the webhook of %s does not answer: %w", kind.GVK.Kind, err)
			}
		}
	}
	return nil
}

// answer is what a create answers, in a form that can be compared.
type answer struct {
	Status   *metav1.Status
	Warnings []string
	Object   map[string]any
}

// create sends a dry-run request.
func (s *server) create(kind *kinds.Kind, req create.Request) (answer, *apierrors.StatusError) {
	url := fmt.Sprintf("%s/apis/%s/namespaces/%s/%s?dryRun=All&fieldValidation=%s",
		s.host, kind.GVK.GroupVersion(), req.Namespace, kind.Resource(), req.Validation)
	contentType := "application/json"
	if req.YAML {
		contentType = "application/yaml"
	}
	post, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(req.Body))
	if err != nil {
		panic(err)
	}
	post.Header.Set("Content-Type", contentType)
	post.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(post)
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		panic(err)
	}
	var out answer
	warnings, _ := utilnet.ParseWarningHeaders(resp.Header["Warning"])
	for _, warning := range warnings {
		out.Warnings = append(out.Warnings, warning.Text)
	}
	if resp.StatusCode != http.StatusCreated {
		out.Status = &metav1.Status{}
		if err := json.Unmarshal(body, out.Status); err != nil { // The CRD is not served yet.
			out.Status.Message = fmt.Sprintf("%s: %s", resp.Status, body)
		}
		return out, &apierrors.StatusError{ErrStatus: *out.Status}
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(body); err != nil {
		panic(err)
	}
	out.Object = stored(obj)
	return out, &apierrors.StatusError{}
}

// stored returns an object without what the API server adds by itself.
func stored(obj *unstructured.Unstructured) map[string]any {
	for _, field := range []string{"uid", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	return obj.Object
}

// object returns an object of a kind as JSON.
func object(kind *kinds.Kind, name string, spec any) []byte {
	data, err := json.Marshal(map[string]any{
		"apiVersion": kind.GVK.GroupVersion().String(), "kind": kind.GVK.Kind,
		"metadata": map[string]any{"name": name}, "spec": spec,
	})
	if err != nil {
		panic(err)
	}
	return data
}
