// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// offlineEnv is set in the process that has no network.
const offlineEnv = "MODELBOX_TEST_OFFLINE"

// The commands that need no cluster also run in a network namespace that has no route and whose
// loopback interface is down.
func TestOffline(t *testing.T) {
	if os.Getenv(offlineEnv) != "" {
		noNetwork(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^(TestOffline|TestLint.*|TestRender.*|TestNext.*|TestTheNameOfTheProgram)$", "-test.v")
	cmd.Env = append(os.Environ(), offlineEnv+"=namespace", "KUBECONFIG=/dev/null")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if notPermitted(err) { // Where namespaces are forbidden, every request would go to a proxy that does not exist.
		cmd = exec.Command(cmd.Path, cmd.Args[1:]...)
		cmd.Env = append(os.Environ(), offlineEnv+"=proxy", "KUBECONFIG=/dev/null", "HTTP_PROXY=http://192.0.2.1:1", "HTTPS_PROXY=http://192.0.2.1:1")
		out, err = cmd.CombinedOutput()
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func notPermitted(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)
}

func noNetwork(t *testing.T) {
	if os.Getenv(offlineEnv) != "namespace" {
		return
	}
	for _, address := range []string{"127.0.0.1:1", "192.0.2.1:443"} {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if !errors.Is(err, syscall.ENETUNREACH) {
			t.Errorf("%s: %v %v", address, conn, err)
		}
	}
}
