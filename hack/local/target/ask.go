// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
)

// Ask writes a question and reads whether the answer is yes. Every other answer, and the end of
// in, is no. It returns when ctx ends, although in is still being read then.
func Ask(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	if _, err := fmt.Fprintf(out, "%s [y/N] ", question); err != nil {
		return false, err
	}
	answers := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		answers <- line
	}()
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case line := <-answers:
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes", nil
	}
}
