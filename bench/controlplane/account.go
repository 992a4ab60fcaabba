// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/modelbox-operator/modelbox-operator/bench/modelboxes"
)

// Namespace holds all objects of a benchmark.
const Namespace = modelboxes.Namespace

// Account is a service account for one implementation. The API server counts its
// requests separately from all others.
type Account struct {
	Name string
	// Kubeconfig is a file that holds its token.
	Kubeconfig string
	// Config is the content of that file.
	Config *rest.Config

	controlPlane *ControlPlane
}

// Account creates an account with all permissions: the cost of authorization is the same
// for all implementations, and their permissions are not measured.
func (p *ControlPlane) Account(ctx context.Context, name string) (*Account, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name}}
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		account,
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: name}},
		},
	}
	for _, schema := range flowSchemas(name) {
		objects = append(objects, schema)
	}
	for _, object := range objects {
		if err := client.IgnoreAlreadyExists(p.Client.Create(ctx, object)); err != nil {
			return nil, fmt.Errorf("creating the account %s: %w", name, err)
		}
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(24 * 60 * 60))}}
	if err := p.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("requesting a token for %s: %w", name, err)
	}
	a := &Account{Name: name, controlPlane: p, Kubeconfig: filepath.Join(p.Dir, name+".kubeconfig")}
	return a, a.connect(ctx, request.Status.Token)
}

// connect writes the kubeconfig and waits until the account's requests are
// counted.
func (a *Account) connect(ctx context.Context, token string) error {
	a.Config = rest.AnonymousClientConfig(a.controlPlane.Config)
	a.Config.BearerToken = token
	file := clientcmdapi.NewConfig()
	file.Clusters["bench"] = &clientcmdapi.Cluster{Server: a.Config.Host, CertificateAuthorityData: a.controlPlane.Config.CAData}
	file.AuthInfos[a.Name] = &clientcmdapi.AuthInfo{Token: token}
	file.Contexts["bench"] = &clientcmdapi.Context{Cluster: "bench", AuthInfo: a.Name, Namespace: Namespace}
	file.CurrentContext = "bench"
	content, err := clientcmd.Write(*file)
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.Kubeconfig, content, 0o600); err != nil {
		return err
	}
	probe, err := client.New(a.Config, client.Options{})
	if err != nil {
		return err
	}
	return Poll(ctx, 200*time.Millisecond, time.Minute, "waiting for the requests of "+a.Name+" to be counted", func() (bool, error) {
		if err := probe.Get(ctx, client.ObjectKey{Name: Namespace}, &corev1.Namespace{}); err != nil {
			return false, nil //nolint:nilerr // Its permissions may not be in effect yet.
		}
		counts, err := a.Requests(ctx)
		return counts.Gets > 0, err
	})
}
