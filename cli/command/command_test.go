// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"

	"github.com/modelbox-operator/modelbox-operator/cli/command"
	"github.com/modelbox-operator/modelbox-operator/internal/version"
	"github.com/modelbox-operator/modelbox-operator/kinds/sizes"
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
		"no findings in JSON": {boxOf("a:1"), []string{"-", "-o", "json"}, result{"[]\n", "", 0}},
		"strict": {boxOf("a"), []string{"-", "--strict"}, result{
			"<stdin>:4: warning: ModelBox \"web\": spec.image: has no tag; use a version tag or spec.imagePullPolicy: IfNotPresent\n",
			"1 object checked: 0 errors, 1 warning\n", 1,
		}},
		"an error": {boxOf("''"), []string{"-f-"}, result{
			"<stdin>:4: error: ModelBox \"web\": spec.image: Required value: specify an image such as registry.example.com/team/server:1.2\n",
			"1 object checked: 1 error, 0 warnings\n", 1,
		}},
		"other kinds":            {"apiVersion: v1\nkind: Pod", []string{"-"}, result{"", "0 objects checked: 0 errors, 0 warnings\n", 0}},
		"no file":                {"", []string{"-f", "none.yaml"}, result{"", "error: lstat none.yaml: no such file or directory\n", 3}},
		"nothing":                {"", nil, result{"", "error: name what to check: -f FILE, -f FOLDER, or -f - for the standard input\n", 3}},
		"an unknown format":      {boxOf("a:1"), []string{"-", "-o", "xml"}, result{"", "error: unknown output format \"xml\"; see --help\n", 3}},
		"an unknown flag":        {"", []string{"--x"}, result{"", "error: unknown flag: --x; see 'modelbox lint --help'\n", 3}},
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

// A file of sizes is checked, and so are manifests with it.
func TestSizes(t *testing.T) {
	sizes, wrong := filepath.Join(t.TempDir(), "sizes.yaml"), filepath.Join(t.TempDir(), "wrong.yaml")
	for name, text := range map[string]string{
		sizes: "sizes: {gpu-l4: {resources: {limits: {cpu: 8, nvidia.com/gpu: 1}}, scheduling: {runtimeClassName: nvidia}}}",
		wrong: "sizes: {gpu-l4: {resourcez: {}}}",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sized := func(fields string) string { return strings.Replace(boxOf("a:1"), "a:1", "a:1, "+fields, 1) }
	box := sized("resourceType: gpu-l4")
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  string // A part of the output, or of the error.
		code  int
	}{
		"the file alone": {"", []string{"lint", "--sizes", sizes}, "0 objects checked: 0 errors, 0 warnings\n", 0},
		"a wrong file":   {"", []string{"lint", "--sizes", wrong}, "sizes.gpu-l4.resourcez: ", 3},
		"no such file":   {"", []string{"lint", "--sizes", "none.yaml"}, "no such file", 3},
		"an object":      {box, []string{"lint", "--sizes", sizes, "-"}, "1 object checked: 0 errors, 1 warning\n", 0},
		"another value":  {sized("resourceType: gpu-l4, scheduling: {runtimeClassName: a}"), []string{"lint", "--sizes", sizes, "-"}, "spec.scheduling.runtimeClassName: Invalid value", 1},
		"no such size":   {sized("resourceType: huge"), []string{"lint", "--sizes", sizes, "-"}, `Unsupported value: "huge"`, 1},
		"rendered":       {box, []string{"render", "--sizes", sizes, "-f", "-"}, "runtimeClassName: nvidia", 0},
		"not rendered":   {box, []string{"render", "-f", "-"}, "the values of a size of the cluster are not known", 3},
	} {
		got := run(tc.stdin, tc.args...)
		if got.code != tc.code || !strings.Contains(got.out+got.err, tc.want) {
			t.Errorf("%s: %+v, want %q and %d", name, got, tc.want, tc.code)
		}
	}
}

// Each shipped size has an example, which is without errors and warnings with it.
func TestLintOfTheExamplesOfSizes(t *testing.T) {
	dir := filepath.Join(testenv.Root(), "config", "sizes")
	data, err := os.ReadFile(filepath.Join(dir, "sizes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	examples, err := os.ReadFile(filepath.Join(dir, "examples.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all, errs := sizes.Parse(data)
	if len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	for name := range all {
		if !strings.Contains(string(examples), "resourceType: "+string(name)+",") {
			t.Errorf("%s has no example", name)
		}
	}
	got := run(string(examples), "lint", "--strict", "--sizes", filepath.Join(dir, "sizes.yaml"), "-")
	if want := fmt.Sprintf("%d objects checked: 0 errors, 0 warnings\n", len(all)); got.code != 0 || got.err != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

// Each sample is without errors, and the worked examples are without warnings. Each format can be written.
func TestLintOfSamples(t *testing.T) {
	samples := filepath.Join(testenv.Root(), "config", "samples")
	for _, args := range [][]string{{"-R", "-o", "text", samples}, {"-R", "-o", "json", samples}, {"-R", "-o", "yaml", samples}, {"--strict", filepath.Join(samples, "more")}} {
		if got := run("", append([]string{"lint"}, args...)...); got.code != 0 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// What is rendered for the inputs of the operator's golden files is what they contain.
func TestRenderIsWhatTheOperatorCreates(t *testing.T) {
	const uid = "6a1e2c55-0000-4000-8000-000000000000"
	var inputs []string
	for _, kind := range []string{"modelbox", "app", "genericdaemon"} {
		files, err := filepath.Glob(filepath.Join(testenv.Root(), "kinds", kind, "testdata", "*.golden.yaml"))
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

// What no command reads is exit code 3, and so are wrong arguments of any command.
func TestNothingAndWrongUsage(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for _, text := range []string{"", "# c\n---\n", "{}", "5", "a", "- a", "a: b", "kind: Pod", strings.Replace(boxOf("a:1"), "github", "gihub", 1)} {
		name := filepath.Join(t.TempDir(), "x.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, command := range []string{"lint", "render", "plan", "next", "pin", "pin --check"} {
			if got := run("", append(strings.Fields(command), "-f", name)...); got.code != 3 || !strings.Contains(got.err, "nothing was read: ") {
				t.Errorf("%s of %q: %+v", command, text, got)
			}
		}
	}
	for _, cmd := range command.New(command.Env{}).Commands() {
		for _, args := range [][]string{{"--unknown"}, {"a", "b", "c", "-o", "x", "--all"}} {
			if got := run("", append([]string{cmd.Name()}, args...)...); got.code != 3 || strings.Count(got.err, "\n") != 1 {
				t.Errorf("%s %q: %+v", cmd.Name(), args, got)
			}
		}
	}
	for _, args := range []string{"unknown", "status", "status web", "status pod/web", "status a/b --all", "status -w --all", "adopt web", "adopt deployment", "adopt service/web", "adopt daemonset/web", "adopt deploy/web --kind Eru", "adopt deploy/web --kind jane", "resize app/a", "pause eru/a",
		"pin", "lint", "lint none.yaml", "next -n 0", "next @daily -f x", "plan -f none.yaml", "render -f none.yaml", "version -o x --client", "restart app/a", "next", "history app/a"} {
		if got := run("", strings.Fields(args)...); got.code != 3 || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if got := run("", "restart", "app/a"); got.err != "error: this command needs a cluster: name its kubeconfig with --kubeconfig or KUBECONFIG\n" {
		t.Errorf("without a kubeconfig: %s", got.err)
	}
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
		"an unknown kind":      {"apiVersion: model.github.com/v1\nkind: Box", nil, "set kind: ModelBox", 3},
		"other kinds":          {"apiVersion: v1\nkind: Pod", nil, "", 0},
		"no children":          {"apiVersion: extension.k8s.io/v1\nkind: UnitedDeployment\nmetadata: {name: a}\nspec: {deploymentName: b, replicas: 1}", nil, "", 0},
		"nor of an Eru":        {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec: {}", nil, "", 0},
		"an Eru with defaults": {"apiVersion: mtsre.meitu.com/v1\nkind: Eru\nmetadata: {name: a}\nspec: {}", []string{"--defaults"}, "timeZone: Etc/UTC", 0},
		"a model":              {withModel, nil, "image: modelbox-controller:" + version.Version + "\n", 0},
		"its image":            {withModel, []string{"--fetch-image", "r.io/c:1"}, "image: r.io/c:1\n", 0},
		"schedules":            {boxOf("a:1, schedules: [{name: a, schedule: '* * * * *', replicas: 6}]"), nil, "replicas: 6", 0},
		"an unknown format":    {boxOf("a:1"), []string{"-o", "x"}, "unknown output format \"x\"", 3},
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
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  result
	}{
		"a schedule": {"", []string{"30 2 * * *", "--time-zone", "Europe/Berlin", "-n", "2"}, result{out: `
TIME                            IN    NAMESPACE   OBJECT   ACTION   NOTE
Sat 2026-03-28T02:30:00+01:00   90m   -           -        -        
Sun 2026-03-29T03:00:00+02:00   25h   -           -        -        clocks go forward 1h at 2026-03-29 02:00; 02:30 does not exist on this day, so it runs right after the change (Europe/Berlin)
`}},
		"JSON": {"", []string{"@daily", "-n", "1", "-o", "json", "--after", "2026-01-01T12:00:00Z"}, result{out: `
[
  {
    "time": "2026-01-02T00:00:00Z",
    "timeZone": "Etc/UTC",
    "changes": false
  }
]
`}},
		"a namespace": {"", []string{"@daily", "-n", "serving"}, result{err: `error: invalid argument "serving" for "-n, --number" flag: strconv.ParseInt: parsing "serving": invalid syntax; see 'modelbox next --help'
`, code: 3}},
		"too many":     {"", []string{"@daily", "-n", "1001"}, result{err: "error: --number: must be from 1 to 1000", code: 3}},
		"no schedule":  {"", []string{"a b"}, result{err: "error: schedule \"a b\": a schedule has five fields", code: 3}},
		"no zone":      {"", []string{"@daily", "--time-zone", "Mars/Base"}, result{err: "time zone", code: 3}},
		"both":         {boxOf("a:1"), []string{"-f", "-", "@daily"}, result{err: "not several of them\n", code: 3}},
		"a wrong time": {"", []string{"@daily", "--after", "today"}, result{err: "write it as 2026-10-25T00:00:00Z", code: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(tc.stdin, append([]string{"next"}, tc.args...)...)
			if got.code != tc.want.code || got.out != strings.TrimPrefix(tc.want.out, "\n") || !strings.Contains(got.err, tc.want.err) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

const scheduled = `
kind: Eru
apiVersion: mtsre.meitu.com/v1
metadata: {name: nightly}
spec:
  enabled: true
  schedule: "30 2 * * *"
  timeZone: Europe/Berlin
  skipDates: ["2026-03-29"]
  windows: [{schedule: "0 2 * * 6,7", timeZone: Europe/Berlin, duration: 2h}]
---
{kind: Eru, apiVersion: mtsre.meitu.com/v1, metadata: {name: disabled}, spec: {schedule: "30 1 * * *"}}
---
{kind: Eru, apiVersion: mtsre.meitu.com/v1, metadata: {name: other, namespace: other}, spec: {enabled: true, schedule: "30 1 28 * *"}}
---
kind: App
apiVersion: app.huolala.cn/v1
metadata: {name: web}
spec: {image: "a:1", schedules: [{name: morning, schedule: "30 1 * * *", replicas: 6}]}
---
kind: ModelBox
apiVersion: model.github.com/v1
metadata: {name: llm}
spec: {resourceType: gpu-l4, schedules: [{name: day, schedule: "0 9 * * *", timeZone: Asia/Shanghai, replicas: 2}]}
---
kind: UnitedDeployment
apiVersion: extension.k8s.io/v1
metadata: {name: united}
spec: {deploymentName: web, replicas: 1, schedules: [{name: a, schedule: "30 1 29 * *", replicas: 0}, {name: b, schedule: "30 3 29 3 *", timeZone: Europe/Berlin, replicas: 1}]}
---
{kind: Service, apiVersion: v1, metadata: {name: web}, spec: {schedules: 1}}
`

// All that is scheduled, in one time zone: with windows, changes of the clocks and collisions.
func TestNextOfAll(t *testing.T) {
	for name, tc := range map[string]struct {
		stdin string
		args  []string
		want  result
	}{
		"a table": {scheduled, []string{"-o", "table", "--time-zone", "Asia/Shanghai", "-n", "9"}, result{out: `
TIME                            IN    NAMESPACE   OBJECT                    ACTION                               NOTE
Sat 2026-03-28T09:00:00+08:00   60m   default     eru/nightly               window of 2h opens                   
Sat 2026-03-28T09:00:00+08:00   60m   default     modelbox/llm              2 replicas (day)                     
Sat 2026-03-28T09:30:00+08:00   90m   default     eru/nightly               restart                              1 more in this minute
Sat 2026-03-28T09:30:00+08:00   90m   default     app/web                   6 replicas (morning)                 1 more in this minute
Sat 2026-03-28T09:30:00+08:00   90m   other       eru/other                 restart                              
Sun 2026-03-29T09:00:00+08:00   25h   default     eru/nightly               no restart: outside of the windows   clocks go forward 1h at 2026-03-29 02:00; 02:30 does not exist on this day, so it runs right after the change (Europe/Berlin)
Sun 2026-03-29T09:00:00+08:00   25h   default     modelbox/llm              2 replicas (day)                     
Sun 2026-03-29T09:30:00+08:00   25h   default     app/web                   6 replicas (morning)                 1 more in this minute
Sun 2026-03-29T09:30:00+08:00   25h   default     uniteddeployment/united   1 replicas (b)                       1 more in this minute; clocks go forward 1h at 2026-03-29 02:00 (Europe/Berlin)
`}},
		"windows of holdChanges": {strings.Replace(boxOf("a:1"), "image: a:1",
			`holdChanges: All, windows: [{schedule: "0 2 * * *", duration: 2h}], image: "a:1"`, 1), []string{"-n", "1"}, result{out: `
TIME                       IN     NAMESPACE   OBJECT         ACTION               NOTE
Sat 2026-03-28T02:00:00Z   120m   default     modelbox/web   window of 2h opens   
`}},
		"windows of restartOnChange": {strings.Replace(boxOf("a:1"), "image: a:1",
			`restartOnChange: Referenced, windows: [{schedule: "0 2 * * *", duration: 2h}], image: "a:1"`, 1), []string{"-n", "1"}, result{out: `
TIME                       IN     NAMESPACE   OBJECT         ACTION               NOTE
Sat 2026-03-28T02:00:00Z   120m   default     modelbox/web   window of 2h opens   
`}},
		"JSON": {scheduled, []string{"-o", "json", "-n", "1", "--after", "2026-03-29T01:00:00Z", "--time-zone", "Europe/Berlin", "--namespace", "serving"}, result{out: `
[
  {
    "time": "2026-03-29T03:30:00+02:00",
    "namespace": "serving",
    "object": "app/web",
    "field": "spec.schedules[0]",
    "timeZone": "Etc/UTC",
    "action": "6 replicas (morning)",
    "changes": true,
    "collisions": 1
  }
]
`}},
		"nothing is scheduled": {boxOf("a:1"), []string{"-o", "json"}, result{out: "[]\n"}},
		"what is invalid": {strings.Replace(scheduled, "30 2 * * *", "never", 1), []string{"-n", "1"}, result{out: `
TIME                       IN    NAMESPACE   OBJECT         ACTION             NOTE
Sat 2026-03-28T01:00:00Z   60m   default     modelbox/llm   2 replicas (day)   
`, err: "warning: Eru default/nightly is left out: spec.schedule: a schedule has five fields "}},
		"a value of another type":  {strings.Replace(boxOf("a:1"), "image: a:1", "schedules: 1", 1), nil, result{out: "TIME   IN   NAMESPACE   OBJECT   ACTION   NOTE\n", err: "warning: ModelBox default/web is left out: "}},
		"a file that has no YAML":  {"a: [", nil, result{err: "error: <stdin>:1: ", code: 3}},
		"no such time zone":        {scheduled, []string{"--time-zone", "Mars"}, result{err: "error: time zone \"Mars\": ", code: 3}},
		"none of them":             {scheduled, []string{"-n", "0"}, result{err: "error: --number: must be from 1 to 1000", code: 3}},
		"and a schedule":           {scheduled, []string{"@daily"}, result{err: "error: name files, all namespaces, an object or a schedule", code: 3}},
		"no such format of output": {scheduled, []string{"-o", "xml"}, result{err: "error: unknown output format", code: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(tc.stdin, append([]string{"next", "-f", "-"}, tc.args...)...)
			tc.want.out = strings.TrimPrefix(tc.want.out, "\n")
			if diff := cmp.Diff(tc.want.out, got.out); diff != "" || got.code != tc.want.code || !strings.HasPrefix(got.err, tc.want.err) || tc.want.err == "" && got.err != "" {
				t.Errorf("%d %s(-want +got):\n%s", got.code, got.err, diff)
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
