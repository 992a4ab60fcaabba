// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package failure_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/modelbox-operator/modelbox-operator/fetch/failure"
)

func TestOf(t *testing.T) {
	path := func(number syscall.Errno) error { return &os.PathError{Op: "write", Path: "x", Err: number} }
	for _, each := range []struct {
		err  error
		want string
	}{
		{failure.New(failure.NotFound, "a %d", 1), "[NotFound] a 1"},
		{fmt.Errorf("outer: %w", failure.New(failure.Denied, "b")), "[Denied] b"},
		{errors.Join(failure.New(failure.TooBig, "c"), path(syscall.ENOSPC)), "[TooBig] c"},
		{path(syscall.ENOSPC), "[NoSpace] no space is left on the volume: raise spec.model.sizeLimit"},
		{path(syscall.EDQUOT), "[NoSpace] "},
		{path(syscall.EROFS), "[Denied] the volume is read-only"},
		{path(syscall.EACCES), "[Denied] the container's user may not write the volume: set securityContext.fsGroup"},
		{context.Canceled, "[Interrupted] "},
		{path(syscall.EIO), "[Failed] "},
	} {
		if got := failure.Of(each.err).Error(); !strings.HasPrefix(got, each.want) {
			t.Errorf("Of(%v) is %q, want %q", each.err, got, each.want)
		}
	}
	if !errors.Is(failure.New(failure.Failed, "a: %w", io.EOF), io.EOF) {
		t.Error("the cause is lost")
	}
}

func TestCutNeverCutsACharacter(t *testing.T) {
	if got := failure.Cut("[Refused] "+strings.Repeat("x", 300)+": check it", 200); len(got) != 200 || !strings.HasPrefix(got, "[Refused] x") || !strings.HasSuffix(got, "x: check it") {
		t.Errorf("a long text is not cut in its middle: %d %q", len(got), got)
	}
	for size := 10; size < 40; size++ {
		if got := failure.Cut(strings.Repeat("模", 20), size); len(got) > size || !utf8.ValidString(got) {
			t.Errorf("Cut to %d is %q", size, got)
		}
	}
}
