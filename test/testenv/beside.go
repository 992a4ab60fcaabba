// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// otherAssets is the variable with the folder of the programs of another version of Kubernetes.
// "make test-versions" sets it.
const otherAssets = "MODELBOX_OTHER_ASSETS"

// Beside starts an API server of another version beside that of the environment, on the same etcd, as
// during an upgrade of a cluster. Without another version, it emulates the minor version before its
// own. It returns the version that it has, and the configuration of an administrator with a name.
func (e *Env) Beside(user string) (version string, cfg *rest.Config, stop func() error, err error) {
	own := e.env.ControlPlane.GetAPIServer()
	server := &envtest.APIServer{
		EtcdURL: own.EtcdURL, Path: own.Path, StartTimeout: e.env.ControlPlaneStartTimeout, StopTimeout: e.env.ControlPlaneStopTimeout,
	}
	server.Configure().
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement").
		Set("service-cluster-ip-range", own.Configure().Get("service-cluster-ip-range").Get(nil)...)
	if assets := os.Getenv(otherAssets); assets != "" {
		server.Path = filepath.Join(assets, "kube-apiserver")
	} else {
		before, err := e.minorBefore()
		if err != nil {
			return "", nil, nil, err
		}
		server.Configure().Set("emulated-version", before)
	}
	if err := server.Start(); err != nil {
		return "", nil, nil, fmt.Errorf("starting the second API server: %w", err)
	}
	plane := &envtest.ControlPlane{APIServer: server}
	added, err := plane.AddUser(envtest.User{Name: user, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return "", nil, nil, errors.Join(fmt.Errorf("adding user %q: %w", user, err), server.Stop())
	}
	cfg = added.Config()
	cfg.QPS = -1
	info, err := versionOf(cfg)
	if err != nil {
		return "", nil, nil, errors.Join(err, server.Stop())
	}
	return info.Major + "." + info.Minor, cfg, server.Stop, nil
}

// minorBefore returns the minor version before that of the API server, such as 1.36.
func (e *Env) minorBefore() (string, error) {
	info, err := versionOf(e.Config)
	if err != nil {
		return "", err
	}
	minor, err := minorOf(info)
	return fmt.Sprint("1.", minor-1), err
}
