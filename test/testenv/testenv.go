// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package testenv starts the real kube-apiserver and etcd for test suites, with the
// project's CRDs and an audit log of all requests.
package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/modelbox-operator/modelbox-operator/api"
)

// Env is a running control plane: etcd and kube-apiserver, no controllers.
type Env struct {
	// Config has an administrator's credentials. Client uses it, without a cache.
	Config *rest.Config
	Client client.WithWatch
	// Webhooks has the address for the webhook server, if Options.Webhooks is set.
	Webhooks *envtest.WebhookInstallOptions

	env   *envtest.Environment
	dir   string
	audit auditLog
}

// Options defines what is installed in addition to the CRDs.
type Options struct {
	// Webhooks installs config/webhook's configurations, changed to call a local port.
	Webhooks bool
	// Policies installs config/policies. The API server needs a moment until the policies
	// are in effect.
	Policies bool
	// CRDs are the files of config/crd/bases that are installed, by default all.
	CRDs []string
	// EmulatedVersion is the minor version of Kubernetes, such as 1.34, whose fields and feature
	// gates the API server has; by default its own.
	EmulatedVersion string
	// ClientCertificate is what the API server presents to webhooks, by default nothing.
	ClientCertificate *ClientCertificate
}

// Root returns the root directory of the repository: the one with hack/boilerplate.go.txt, in or
// above the working directory. Binaries that were built with -trimpath do not know it.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "hack", "boilerplate.go.txt")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			panic("the working directory is not in the repository")
		}
	}
}

// Scheme returns a scheme with Kubernetes' own kinds and the project's kinds.
func Scheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, api.AddToScheme(scheme)
}

// Start starts a control plane. It needs KUBEBUILDER_ASSETS, which "make test"
// sets.
func Start(options Options) (*Env, error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return nil, fmt.Errorf("KUBEBUILDER_ASSETS is not set: run the tests with 'make test', or set it to the output of hack/binaries.sh")
	}
	dir, err := os.MkdirTemp("", "testenv")
	if err != nil {
		return nil, err
	}
	e := &Env{dir: dir, audit: auditLog{path: filepath.Join(dir, "audit.log"), byUser: map[string][]Request{}}}
	e.env = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join(Root(), "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		// The defaults, of 10 and 20 s, are too short for several at once on a small machine.
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  2 * time.Minute,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: time.Minute},
		WebhookInstallOptions:    envtest.WebhookInstallOptions{MaxTime: time.Minute},
	}
	if len(options.CRDs) > 0 {
		e.env.CRDDirectoryPaths = nil
	}
	for _, file := range options.CRDs {
		e.env.CRDDirectoryPaths = append(e.env.CRDDirectoryPaths, filepath.Join(Root(), "config", "crd", "bases", file))
	}
	if options.Webhooks {
		e.env.WebhookInstallOptions.Paths = []string{filepath.Join(Root(), "config", "webhook", "generated")}
		e.Webhooks = &e.env.WebhookInstallOptions
	}
	if err := e.configure(); err != nil {
		return nil, err
	}
	if options.EmulatedVersion != "" {
		e.env.ControlPlane.GetAPIServer().Configure().Set("emulated-version", options.EmulatedVersion)
	}
	if err := e.presentToWebhooks(options.ClientCertificate); err != nil {
		return nil, err
	}
	if e.Config, err = e.env.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), e.Stop())
	}
	if options.Policies {
		if _, err := e.Kubectl("", "apply", "-k", filepath.Join(Root(), "config", "policies")); err != nil {
			return nil, errors.Join(err, e.Stop())
		}
	}
	return e, e.connect()
}

func (e *Env) connect() error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	e.Client, err = client.NewWithWatch(e.Config, client.Options{Scheme: scheme})
	return err
}

// As returns the configuration of an administrator with another name, so that the audit
// log distinguishes the requests.
func (e *Env) As(user string) (*rest.Config, error) {
	return e.User(user, "system:masters")
}

// User returns the configuration of a user in some groups. The user has the rights that
// RBAC objects give to it or to one of its groups: see Grant. There is no client-side
// rate limit.
func (e *Env) User(name string, groups ...string) (*rest.Config, error) {
	added, err := e.env.AddUser(envtest.User{Name: name, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("adding user %q: %w", name, err)
	}
	cfg := added.Config()
	cfg.QPS = -1
	return cfg, nil
}

// Stop stops the control plane and deletes its files.
func (e *Env) Stop() error {
	if err := e.env.Stop(); err != nil {
		return err
	}
	return os.RemoveAll(e.dir)
}
