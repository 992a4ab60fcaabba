// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package implementation

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// Program is a program and the module that it is built from.
type Program struct {
	name, module, pkg string
}

// The programs that are measured.
var (
	Controller      = Program{"controller", ".", "./controller"}
	Webhook         = Program{"webhook", ".", "./webhook"}
	RawClient       = Program{"raw", "bench", "./raw"}
	PlainController = Program{"plain", "bench", "./plain"}
	kro             = Program{"kro", "hack/tools/kro", "github.com/kubernetes-sigs/kro/cmd/controller"}
	sample          = Program{"sample", "hack/tools/sample", "k8s.io/sample-controller"}
)

func (p Program) path() string { return filepath.Join(testenv.Root(), "bin", "bench", p.name) }

// Build builds the program with the flags that the operator's images are built with.
func (p Program) Build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", p.path(), p.pkg)
	cmd.Dir = filepath.Join(testenv.Root(), filepath.FromSlash(p.module))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.name, err, out)
	}
	return nil
}

// dir returns the source directory of the module that the program is built from.
func (p Program) dir(ctx context.Context, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = filepath.Join(testenv.Root(), filepath.FromSlash(p.module))
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of %s: %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}
