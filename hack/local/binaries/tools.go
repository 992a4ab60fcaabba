// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binaries

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The modules whose versions are the programs' versions.
const (
	kubernetesModule = "k8s.io/kubernetes"
	etcdModule       = "go.etcd.io/etcd/server/v3"
	kwokModule       = "sigs.k8s.io/kwok"
)

// tool is one program.
type tool struct {
	// name is the file's name, the one that kwokctl and envtest look for.
	name string
	// module carries the version, and pkg is its main package.
	module, pkg string
	// pinnedIn is the folder of hack/tools with the go.mod that pins module.
	pinnedIn string
}

// tools lists the programs in the order in which they are provided. The API server is
// first because the other ones share most of its packages.
var tools = []tool{
	kubernetesTool("kube-apiserver"),
	kubernetesTool("kube-controller-manager"),
	kubernetesTool("kube-scheduler"),
	kubernetesTool("kubectl"),
	{name: "etcd", module: etcdModule, pkg: etcdModule, pinnedIn: "kube"},
	kwokTool("kwok"),
	kwokTool("kwokctl"),
}

func kubernetesTool(name string) tool {
	return tool{name: name, module: kubernetesModule, pkg: kubernetesModule + "/cmd/" + name, pinnedIn: "kube"}
}

func kwokTool(name string) tool {
	return tool{name: name, module: kwokModule, pkg: kwokModule + "/cmd/" + name, pinnedIn: "kwok"}
}

// Names lists the programs, by file name.
func Names() []string { return names(tools) }

func names(list []tool) []string {
	all := make([]string, 0, len(list))
	for _, t := range list {
		all = append(all, t.name)
	}
	return all
}

// pins are the versions that the repository requires.
type pins struct {
	// root is the repository.
	root string
	// versions maps a module to its version, such as "v1.37.1".
	versions map[string]string
	// digest is the hash of the go.mod and go.sum files of hack/tools.
	digest []byte
}

func (p pins) version(module string) string { return p.versions[module] }

// dir returns the module from which t is built.
func (p pins) dir(t tool) string { return filepath.Join(p.root, "hack", "tools", t.pinnedIn) }

// readPins reads hack/tools/*/go.mod. It needs no network.
func readPins(ctx context.Context, root string) (pins, error) {
	p := pins{root: root, versions: map[string]string{}}
	hash := sha256.New()
	for _, folder := range []string{"kube", "kwok"} {
		for _, name := range []string{"go.mod", "go.sum"} {
			content, err := os.ReadFile(filepath.Join(root, "hack", "tools", folder, name))
			if err != nil {
				return pins{}, fmt.Errorf("reading the pinned versions: %w (run this from a clone of the repository)", err)
			}
			_, _ = fmt.Fprintf(hash, "%s/%s %d\n", folder, name, len(content))
			hash.Write(content)
		}
		if err := p.addVersions(ctx, filepath.Join(root, "hack", "tools", folder)); err != nil {
			return pins{}, err
		}
	}
	p.digest = hash.Sum(nil)
	for _, t := range tools {
		if p.versions[t.module] == "" {
			return pins{}, fmt.Errorf("hack/tools/%s/go.mod does not require %s", t.pinnedIn, t.module)
		}
	}
	return p, nil
}

func (p pins) addVersions(ctx context.Context, dir string) error {
	// This only prints go.mod; it edits nothing.
	out, err := goCommand(ctx, dir, "mod", "edit", "-json").Output()
	if err != nil {
		return fmt.Errorf("reading %s/go.mod: %w", dir, withStderr(err))
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		return fmt.Errorf("reading %s/go.mod: %w", dir, err)
	}
	for _, r := range mod.Require {
		p.versions[r.Path] = r.Version
	}
	return nil
}

// goCommand returns a command of the Go tool in dir, without the developer's workspace:
// a go.work file must not change the pinned modules.
func goCommand(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	return cmd
}

// withStderr adds what a command wrote to standard error, where the Go tool prints its
// errors.
func withStderr(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return err
}

// semver splits "v1.37.1" into "1" and "37".
func semver(version string) (major, minor string) {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) < 3 {
		return "", ""
	}
	return parts[0], parts[1]
}
