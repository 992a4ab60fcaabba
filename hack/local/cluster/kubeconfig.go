// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// writeKubeconfig writes a copy of kwokctl's kubeconfig that needs no other file and
// whose context has the name of the cluster. Only its owner may read it, because it
// contains the administrator's key.
func (c *Cluster) writeKubeconfig() error {
	config, err := clientcmd.LoadFromFile(filepath.Join(c.Dir(), "kubeconfig.yaml"))
	if err != nil {
		return fmt.Errorf("reading kwokctl's kubeconfig: %w", err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("reading the files that kwokctl's kubeconfig names: %w", err)
	}
	renamed, err := rename(config, c.Name)
	if err != nil {
		return err
	}
	content, err := clientcmd.Write(*renamed)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig: %w", err)
	}
	return replaceFile(c.Kubeconfig, content)
}

// rename returns a copy with only the current context, in which the context, the cluster
// and the user have the given name.
func rename(config *clientcmdapi.Config, name string) (*clientcmdapi.Config, error) {
	current := config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil || config.AuthInfos[current.AuthInfo] == nil {
		return nil, fmt.Errorf("kwokctl's kubeconfig has no complete context %q", config.CurrentContext)
	}
	renamed := clientcmdapi.NewConfig()
	renamed.Clusters[name] = config.Clusters[current.Cluster]
	renamed.AuthInfos[name] = config.AuthInfos[current.AuthInfo]
	renamed.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	renamed.CurrentContext = name
	return renamed, nil
}

// replaceFile writes a private file atomically, so that no reader sees a part of it.
func replaceFile(path string, content []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating %s: %w", dir, err)
	}
	// CreateTemp gives the mode 0600.
	file, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.Write(content)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}
