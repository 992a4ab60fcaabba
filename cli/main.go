// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command modelbox is the operator's command line: it checks manifests without a cluster,
// shows what the operator makes of them, and works with the objects in a cluster. As
// kubectl-modelbox in the PATH it is kubectl's plug-in "kubectl modelbox".
package main

import (
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/utils/clock"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
)

func main() {
	os.Exit(command.Run(command.Env{
		IOStreams:   genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Program:     os.Args[0],
		Clock:       clock.RealClock{},
		Interactive: printers.IsTerminal(os.Stdin),
	}, os.Args[1:]))
}
