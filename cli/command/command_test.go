// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
	"github.com/modelbox-operator/modelbox-operator/cli/lint"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/test/testenv"
)

// result is what a command printed, and its exit code.
type result struct {
	out, err string
	code     int
}

// now is the time of all tests.
var now = time.Date(2026, 3, 28, 0, 0, 0, 0, time.UTC)

func run(stdin string, args ...string) result {
	var out, errOut bytes.Buffer
	code := command.Run(command.Env{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut},
		Program:   "/usr/bin/modelbox",
		Clock:     testclock.NewFakeClock(now),
	}, args)
	return result{out.String(), errOut.String(), code}
}

const box = "apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec: {image: %}\n"

func boxOf(image string) string { return strings.Replace(box, "%", image, 1) }

const withModel = "apiVersion: model.github.com/v1\nkind: ModelBox\nmetadata: {name: web}\nspec:\n  image: a:1\n  model:\n    uri: hf://org/name@0123456789abcdef0123456789abcdef01234567\n"

func TestLint(t *testing.T) {
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  result
	}{
		"fine": {boxOf("a:1"), []string{"-f", "-"}, result{"", "1 object checked: 0 errors, 0 warnings\n", 0}},
		"a warning": {boxOf("a"), []string{"-f", "-"}, result{
			"<stdin>:4: warning: ModelBox \"web\": spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent\n",
			"1 object checked: 0 errors, 1 warning\n", 0,
		}},
		"strict": {boxOf("a"), []string{"-", "--strict", "-o", "github"}, result{
			"::warning file=<stdin>,line=4,title=ModelBox \"web\"::spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent\n", "", 1,
		}},
		"an error": {boxOf("''"), []string{"-f-"}, result{
			"<stdin>:4: error: ModelBox \"web\": spec.image: Required value: specify an image such as registry.example.com/team/server:1.2\n",
			"1 object checked: 1 error, 0 warnings\n", 1,
		}},
		"an unknown field":       {boxOf("a:1") + "x: 1", []string{"-", "-o", "json", "--validate", "ignore"}, result{"[]\n", "", 0}},
		"other kinds":            {"apiVersion: v1\nkind: Pod", []string{"-"}, result{"", "0 objects checked: 0 errors, 0 warnings\n", 0}},
		"no file":                {"", []string{"-f", "none.yaml"}, result{"", "error: stat none.yaml: no such file or directory\n", 3}},
		"nothing":                {"", nil, result{"", "error: name what to check: -f FILE, -f FOLDER, or -f - for the standard input\n", 3}},
		"an unknown format":      {boxOf("a:1"), []string{"-", "-o", "xml"}, result{"", "error: unknown output format \"xml\": use one of text, json, sarif, github\n", 3}},
		"an unknown validation":  {boxOf("a:1"), []string{"-", "--validate", "no"}, result{"", "error: --validate=no: use strict, warn or ignore\n", 3}},
		"an unknown flag":        {"", []string{"--x"}, result{"", "error: unknown flag: --x; see 'modelbox lint --help'\n", 1}},
		"the namespace of flags": {strings.Replace(boxOf("a:1"), "name: web", "name: web, namespace: a", 1), []string{"-", "-n", "b"}, result{"", "1 object checked: 0 errors, 0 warnings\n", 0}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(tc.stdin, append([]string{"lint"}, tc.args...)...)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each sample is without errors, and each format can be written.
func TestLintOfSamples(t *testing.T) {
	for _, format := range lint.Formats {
		got := run("", "lint", "-R", "-o", format, "-f", filepath.Join(testenv.Root(), "config", "samples"))
		if got.code != 0 {
			t.Errorf("%s: %+v", format, got)
		}
	}
}

// What is rendered for the inputs of the operator's golden files is what they contain.
func TestRenderIsWhatTheOperatorCreates(t *testing.T) {
	const uid = "6a1e2c55-0000-4000-8000-000000000000"
	var inputs []string
	for _, kind := range []string{"modelbox", "app", "genericdaemon"} {
		files, err := filepath.Glob(filepath.Join(testenv.Root(), "controller", kind, "testdata", "*.golden.yaml"))
		if err != nil || len(files) < 2 {
			t.Fatalf("%s: %v: %v", kind, files, err)
		}
		inputs = append(inputs, files...)
	}
	for _, golden := range inputs {
		input := strings.TrimSuffix(golden, ".golden.yaml") + ".yaml"
		t.Run(strings.TrimPrefix(input, testenv.Root()), func(t *testing.T) {
			manifest := file(t, input)
			got := run(strings.Replace(manifest, "\nmetadata:\n", "\nmetadata:\n  uid: "+uid+"\n", 1), "render", "-f", "-", "--fetch-image", "modelbox-controller:test")
			// The schema has a default for this field, and the golden files are made without it.
			want := strings.ReplaceAll(file(t, golden), "service: null", `service: ""`)
			if diff := cmp.Diff(result{out: want}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-golden file +rendered):\n%s", diff)
			}
		})
	}
}

func file(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRender(t *testing.T) {
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string // A part of the output, or of the error.
		code  int
	}{
		"the defaults":         {boxOf("a:1"), []string{"--defaults"}, "serviceType: ClusterIP", 0},
		"JSON":                 {boxOf("a:1"), []string{"-o", "json"}, "\"kind\": \"Deployment\"", 0},
		"without a uid":        {boxOf("a:1"), nil, "uid: \"\"", 0},
		"in a namespace":       {boxOf("a:1"), []string{"-n", "serving"}, "namespace: serving", 0},
		"another namespace":    {strings.Replace(boxOf("a:1"), "name: web", "name: web, namespace: a", 1), []string{"-n", "b"}, "namespace: a", 0},
		"an error":             {boxOf("A"), nil, "<stdin>:4: error: ModelBox \"web\": spec.image: Invalid value", 1},
		"an unknown kind":      {"apiVersion: model.github.com/v1\nkind: Box", nil, "set kind: ModelBox", 1},
		"other kinds":          {"apiVersion: v1\nkind: Pod", nil, "", 0},
		"no children":          {"apiVersion: extension.k8s.io/v1\nkind: UnitedDeployment\nmetadata: {name: a}\nspec: {deploymentName: b, replicas: 1}", nil, "", 0},
		"nor of an Eru":        {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec: {}", nil, "", 0},
		"an Eru with defaults": {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec: {}", []string{"--defaults"}, "timeZone: Etc/UTC", 0},
		"a model":              {withModel, nil, "image: modelbox-controller:" + version.Version + "\n", 0},
		"its image":            {withModel, []string{"--fetch-image", "r.io/c:1"}, "image: r.io/c:1\n", 0},
		"two forms":            {boxOf("a:1"), []string{"--defaults", "--diff"}, "none of the others can be", 1},
		"an unknown format":    {boxOf("a:1"), []string{"-o", "x"}, "unknown output format \"x\"", 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(tc.stdin, append([]string{"render", "-f", "-"}, tc.args...)...)
			if got.code != tc.code || !strings.Contains(got.out+got.err, tc.want) || tc.want == "" && got.out+got.err != "" {
				t.Errorf("got %+v, want %q and %d", got, tc.want, tc.code)
			}
		})
	}
}

func TestNext(t *testing.T) {
	eru := "apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: nightly}\nspec: {schedule: '30 2 * * *', timeZone: Europe/Berlin, jitterSeconds: 60}\n"
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  result
	}{
		"a schedule": {"", []string{"30 2 * * *", "--time-zone", "Europe/Berlin", "-n", "2"}, result{out: `
RUN                             IN    NOTE
Sat 2026-03-28T02:30:00+01:00   90m   
Sun 2026-03-29T03:00:00+02:00   25h   clocks go forward 1h at 2026-03-29 02:00; 02:30 does not exist on this day, so it runs right after the change
`}},
		"a file": {eru, []string{"-f", "-", "-n", "1"}, result{out: `
eru/nightly: 30 2 * * * (Europe/Berlin)
note: spec.enabled is false, so it does not run; each run starts up to 60 s later (spec.jitterSeconds)
RUN                             IN    NOTE
Sat 2026-03-28T02:30:00+01:00   90m   
`}},
		"JSON": {"", []string{"@daily", "-n", "1", "-o", "json", "--after", "2026-01-01T12:00:00Z"}, result{out: `
[
  {
    "schedule": "@daily",
    "timeZone": "Etc/UTC",
    "runs": [
      {
        "time": "2026-01-02T00:00:00Z"
      }
    ]
  }
]
`}},
		"a namespace": {"", []string{"@daily", "-n", "serving"}, result{err: `error: invalid argument "serving" for "-n, --number" flag: strconv.ParseInt: parsing "serving": invalid syntax; see 'modelbox next --help'
`, code: 1}},
		"too many":     {"", []string{"@daily", "-n", "1001"}, result{err: "error: --number: must be from 1 to 1000", code: 1}},
		"no schedule":  {"", []string{"a b"}, result{err: "error: schedule \"a b\": a schedule has five fields", code: 1}},
		"no zone":      {"", []string{"@daily", "--time-zone", "Mars/Base"}, result{err: "time zone", code: 1}},
		"nothing":      {"", nil, result{err: "error: name an Eru (eru/NAME), a file (-f FILE) or a schedule (\"30 2 * * *\")\n", code: 1}},
		"no Eru":       {boxOf("a:1"), []string{"-f", "-"}, result{err: "error: the files have no Eru\n", code: 1}},
		"both":         {eru, []string{"-f", "-", "@daily"}, result{err: "error: name a file or an Eru or a schedule, not several of them\n", code: 1}},
		"a wrong time": {"", []string{"@daily", "--after", "today"}, result{err: "write it as 2026-10-25T00:00:00Z", code: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(tc.stdin, append([]string{"next"}, tc.args...)...)
			if got.code != tc.want.code || got.out != strings.TrimPrefix(tc.want.out, "\n") || !strings.Contains(got.err, tc.want.err) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if got := run("", "version", "--client"); got.out != "modelbox: "+version.Version+"\n" || got.code != 0 {
		t.Errorf("got %+v", got)
	}
	// Without a cluster, the reason is in the place of the version.
	got := run("", "version", "-o", "yaml", "--server", "https://127.0.0.1:1")
	if got.code != 0 || strings.Count(got.out, "error: ") != 2 || !strings.HasPrefix(got.out, "client: "+version.Version+"\n") {
		t.Errorf("got %+v", got)
	}
}

// As kubectl's plug-in, the command names itself as such.
func TestTheNameOfTheProgram(t *testing.T) {
	for program, want := range map[string]string{"/usr/bin/kubectl-modelbox": "kubectl modelbox", "./modelbox": "modelbox"} {
		var out bytes.Buffer
		env := command.Env{
			IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out},
			Program:   program, Clock: testclock.NewFakeClock(now),
		}
		if code := command.Run(env, []string{"lint", "--help"}); code != 0 {
			t.Errorf("exit code %d", code)
		}
		for _, part := range []string{"  " + want + " lint [-f FILE", "\n  " + want + " lint -f modelbox.yaml\n"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("%q is not in\n%s", part, out.String())
			}
		}
	}
}
