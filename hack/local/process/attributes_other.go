// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package process

import "syscall"

func attributes() *syscall.SysProcAttr { return nil }
