// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/client-go/discovery"
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
	server := &envtest.APIServer{EtcdURL: own.EtcdURL, StartTimeout: e.env.ControlPlaneStartTimeout, StopTimeout: e.env.ControlPlaneStopTimeout}
	server.Configure().
		Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement").
		Set("service-cluster-ip-range", own.Configure().Get("service-cluster-ip-range").Get(nil)...)
	if assets := os.Getenv(otherAssets); assets != "" {
		server.Path = filepath.Join(assets, "kube-apiserver")
	} else if version, err = e.minorBefore(); err != nil {
		return "", nil, nil, err
	} else {
		server.Path = own.Path
		server.Configure().Set("emulated-version", version)
	}
	if err := server.Start(); err != nil {
		return "", nil, nil, fmt.Errorf("starting the second API server: %w", err)
	}
	plane := &envtest.ControlPlane{APIServer: server}
	added, err := plane.AddUser(envtest.User{Name: user, Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return "", nil, nil, fmt.Errorf("adding user %q: %w", user, err)
	}
	cfg = added.Config()
	cfg.QPS = -1
	if version == "" {
		version, err = gitVersion(cfg)
	}
	return version, cfg, server.Stop, err
}

func gitVersion(cfg *rest.Config) (string, error) {
	c, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return "", err
	}
	info, err := c.ServerVersion()
	if err != nil {
		return "", err
	}
	return info.GitVersion, nil
}

// minorBefore returns the minor version before that of the API server, such as 1.36.
func (e *Env) minorBefore() (string, error) {
	version, err := gitVersion(e.Config)
	if err != nil {
		return "", err
	}
	minor, err := strconv.Atoi(strings.Split(version, ".")[1])
	return fmt.Sprint("1.", minor-1), err
}
