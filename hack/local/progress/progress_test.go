// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/modelbox-operator/modelbox-operator/hack/local/progress"
)

func TestStep(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		terminal bool
		lasts    time.Duration
		end      func(*progress.Step)
		want     string
	}{
		"a short step in a log is two lines": {
			lasts: 1500 * time.Millisecond,
			end:   (*progress.Step).Done,
			want:  "building etcd ...\nbuilding etcd (1.5s)\n",
		},
		"a long step in a log prints a line every 20 seconds": {
			lasts: 50 * time.Second,
			end:   (*progress.Step).Done,
			want: "building etcd ...\nbuilding etcd ... half way 20s\nbuilding etcd ... half way 40s\n" +
				"building etcd (50s)\n",
		},
		"a terminal has one line, rewritten every second": {
			terminal: true,
			lasts:    2500 * time.Millisecond,
			end:      (*progress.Step).Done,
			want: "\r\x1b[Kbuilding etcd ...\r\x1b[Kbuilding etcd ... half way 1.0s" +
				"\r\x1b[Kbuilding etcd ... half way 2.0s\r\x1b[Kbuilding etcd (2.5s)\n",
		},
		"a failure is printed": {
			lasts: 61 * time.Second,
			end:   (*progress.Step).Fail,
			want: "building etcd ...\nbuilding etcd ... half way 20s\nbuilding etcd ... half way 40s\n" +
				"building etcd ... half way 1m0s\nbuilding etcd: failed (1m1s)\n",
		},
		"only the first end counts": {
			end:  func(s *progress.Step) { s.Done(); s.Fail() },
			want: "building etcd ...\nbuilding etcd (0.0s)\n",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				step := progress.New(&out, test.terminal).Start("building %s", "etcd")
				step.Detail("half %s", "way")
				// In the synctest bubble, time is simulated and nothing waits.
				time.Sleep(test.lasts)
				test.end(step)
				if diff := cmp.Diff(test.want, out.String()); diff != "" {
					t.Errorf("output (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestIsTerminal(t *testing.T) {
	t.Setenv("CI", "")
	t.Setenv("TERM", "xterm")
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	device, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = device.Close() }()

	if progress.IsTerminal(file) {
		t.Error("a regular file is reported as a terminal")
	}
	if !progress.IsTerminal(device) {
		t.Error("a character device is not reported as a terminal")
	}
	t.Setenv("CI", "true")
	if progress.IsTerminal(device) {
		t.Error("a terminal in CI must not be rewritten")
	}
}
