// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	cli "github.com/modelbox-operator/modelbox-operator/cli/command"
)

// shellCommand is a simple command of a page: its assignments, its program and its arguments.
type shellCommand struct {
	page, text string
	set        []string
	args       []string
	// inline is one in a sentence, whose arguments may be left out.
	inline bool
}

var (
	program   = `(?:bin/)?(?:modelbox|kubectl|make|helm|go)`
	blockLine = regexp.MustCompile(`^(?:[\w ]+=\S* +)*(?:.*(?:[|(;&]|\b(?:do|then|if|while|until|run:)) *|- )?` + program + ` [^:=]`)
	spanLine  = regexp.MustCompile("`(" + program + " [a-z-][^`\n]*)`")
	codeBlock = regexp.MustCompile("(?ms)^```(?:sh|yaml)?\n(.*?)^```\n|((?:^    [^\n]*\n)+)")
	known     = regexp.MustCompile(`^` + program + `$`)
	before    = regexp.MustCompile(`^(\w+=.*|do|then|if|while|until|!|exec|-|run:)$`)
)

// commandsOf returns the commands of a page for the programs that have a check: those of its blocks
// and its sentences. In a block that shows output too, a command begins with "$ ".
func commandsOf(page, text string) (out []shellCommand) {
	for _, block := range codeBlock.FindAllStringSubmatch(text, -1) {
		lines := strings.Split(block[1]+block[2], "\n")
		prompt := slices.ContainsFunc(lines, func(s string) bool { return strings.HasPrefix(strings.TrimSpace(s), "$ ") })
		for i, line := range lines {
			line, command := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if command != prompt || !blockLine.MatchString(line) || strings.HasSuffix(line, "[flags]") { // "Usage" of modelbox.
				continue
			}
			for n := i + 1; n < len(lines) && (strings.HasSuffix(line, `\`) || strings.Count(line, "'")%2 == 1); n++ {
				line += "\n" + lines[n]
			}
			out = append(out, commandsIn(shellCommand{page: page, text: line})...)
		}
	}
	for _, span := range spanLine.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		out = append(out, commandsIn(shellCommand{page: page, text: span[1], inline: true})...)
	}
	return out
}

// commandsIn returns the commands in the text of c.
func commandsIn(c shellCommand) (out []shellCommand) {
	for _, words := range simpleCommands(c.text) {
		c := c
		for len(words) > 0 && before.MatchString(words[0]) {
			if strings.Contains(words[0], "=") {
				c.set = append(c.set, words[0])
			}
			words = words[1:]
		}
		if len(words) < 2 || !known.MatchString(words[0]) {
			continue
		}
		words[0] = filepath.Base(words[0])
		if words[0] == "kubectl" && words[1] == "modelbox" && len(words) > 2 {
			words = words[1:]
		}
		c.args = words
		out = append(out, c)
	}
	return out
}

// Each command of a page for one of these programs is one that the program accepts, names files and
// fields that exist, and keeps the settings of the reader's install.
func TestCommandsOfThePages(t *testing.T) {
	checked := map[string]int{}
	for _, page := range pages() {
		if page == "../CHANGELOG.md" {
			continue // It names what other releases have.
		}
		for _, c := range commandsOf(page, read(t, page)) {
			checked[c.args[0]]++
			if err := check(t, c); err != nil {
				t.Errorf("%s: %s: %v", c.page, c.text, err)
			}
		}
	}
	for name, least := range map[string]int{"modelbox": 120, "make": 200, "helm": 25, "kubectl": 300} {
		if checked[name] < least {
			t.Errorf("only %d commands of %s were found", checked[name], name)
		}
	}
}

func check(t *testing.T, c shellCommand) error {
	t.Helper()
	if err := checkFiles(c); err != nil {
		return err
	}
	switch c.args[0] {
	case "modelbox":
		return checkModelbox(c)
	case "make":
		return checkMake(t, c)
	case "helm":
		return checkHelm(t, c)
	case "kubectl":
		return checkKubectl(t, c)
	}
	return nil
}

// checkFiles: what looks like a path of the repository is one.
func checkFiles(c shellCommand) error {
	for _, word := range c.args {
		path := pathIn(word)
		folder, _, _ := strings.Cut(path, "/")
		if !strings.Contains(path, "/") || !slices.Contains([]string{"certs", "charts", "cli", "config", "controller", "docs", "e2e", "fetch", "hack", "kinds", "test", "webhook"}, folder) {
			continue
		}
		if _, err := os.Stat(filepath.Join("..", strings.TrimSuffix(path, "/..."))); err != nil {
			return err
		}
	}
	return nil
}

// pathIn returns what follows the = of a flag, or the word, from the root of the repository.
func pathIn(word string) string {
	if _, value, found := strings.Cut(word, "="); found {
		word = value
	}
	return strings.TrimPrefix(word, "./")
}

// checkModelbox: the command, its flags and the number of its arguments are known.
func checkModelbox(c shellCommand) error {
	discard := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	root := cli.New(cli.Env{IOStreams: discard, Program: "modelbox"})
	root.InitDefaultCompletionCmd(c.args[1:]...)
	root.InitDefaultHelpCmd()
	command, args, err := root.Find(c.args[1:])
	if err == nil && command == root && !strings.HasPrefix(c.args[1], "-") {
		err = fmt.Errorf("there is no command %s", c.args[1])
	}
	if err == nil {
		command.InitDefaultHelpFlag()
		err = command.ParseFlags(args)
	}
	if required := (*pflag.ValueRequiredError)(nil); c.inline && errors.As(err, &required) {
		return nil
	}
	if err == nil && !c.inline {
		err = command.ValidateArgs(command.Flags().Args())
	}
	return err
}

// checkMake: the target exists, the variables are read somewhere, and the images of an install are named.
func checkMake(t *testing.T, c shellCommand) error {
	makefile := read(t, "../Makefile")
	scripts := regexp.MustCompile(`(?m)^ *#.*$`).ReplaceAllString(makefile, "")
	for _, pattern := range []string{"../hack/*.sh", "../hack/*.mk", "../hack/local/*.sh", "../hack/local/*.go"} {
		files, _ := filepath.Glob(pattern) // The patterns are well-formed.
		for _, file := range files {
			scripts += read(t, file)
		}
	}
	flags := pflag.NewFlagSet("make", pflag.ContinueOnError)
	flags.StringP("directory", "C", "", "")
	if err := flags.Parse(c.args[1:]); err != nil {
		return err
	}
	var targets, variables []string
	for _, word := range append(c.set, flags.Args()...) {
		if name, _, found := strings.Cut(word, "="); found {
			variables = append(variables, name)
			if !regexp.MustCompile(`\b` + name + `\b`).MatchString(scripts) {
				return fmt.Errorf("nothing reads %s", name)
			}
		} else if targets = append(targets, word); !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(word) + `:.*## `).MatchString(makefile) {
			return fmt.Errorf("there is no target %s", word)
		}
	}
	images := func(name string) bool {
		return slices.Contains([]string{"IMG", "IMG_WEBHOOK", "REGISTRY", "TAG"}, name)
	}
	if !c.inline && slices.Contains(targets, "deploy") && !slices.ContainsFunc(variables, images) {
		return fmt.Errorf("it names no images")
	}
	return nil
}

// checkHelm: the values that are set are those of the chart, and an upgrade keeps the others.
func checkHelm(t *testing.T, c shellCommand) error {
	var schema map[string]any
	if err := yaml.Unmarshal([]byte(read(t, "../charts/modelbox-operator/values.schema.json")), &schema); err != nil {
		return err
	}
	for i, word := range c.args[:len(c.args)-1] {
		if !strings.HasPrefix(word, "--set") {
			continue
		}
		key, _, _ := strings.Cut(c.args[i+1], "=")
		at := schema
		for name := range strings.SplitSeq(key, ".") {
			if ref, ok := at["$ref"].(string); ok {
				at, _ = schema["definitions"].(map[string]any)[filepath.Base(ref)].(map[string]any)
			}
			properties, _ := at["properties"].(map[string]any)
			if at, _ = properties[name].(map[string]any); at == nil {
				return fmt.Errorf("the chart has no value %s", key)
			}
		}
	}
	if keeps := slices.Contains(c.args, "--reset-then-reuse-values") || slices.Contains(c.args, "-f"); !c.inline && c.args[1] == "upgrade" && !keeps {
		return fmt.Errorf("it sets the values of the install back")
	}
	return nil
}

// Folders of config/ that have no setting of an install, but for the namespace modelbox-system, which the pages say.
var withoutSettings = regexp.MustCompile(`^config/(crd|samples(/.*)?|monitoring|aggregated-roles|sizes)/?$`)

// checkKubectl: the flags and the fields are known; what is written is no part of the install with
// the settings that this repository has, in place of the reader's: the images, the namespace, the
// certificates. "kubectl replace" would store what the server has added as what was last applied,
// and the next apply fails. The flags are those of the kubectl in KUBEBUILDER_ASSETS, if it is set.
func checkKubectl(t *testing.T, c shellCommand) error {
	writes := slices.ContainsFunc(c.args, func(s string) bool { return slices.Contains([]string{"apply", "create", "delete", "patch"}, s) })
	if !c.inline && slices.Contains(c.args, "replace") {
		return fmt.Errorf("the next apply of it fails")
	}
	for _, word := range c.args {
		if file := pathIn(word); writes && (strings.HasPrefix(file, "config/") || !c.inline && file == "config") && !withoutSettings.MatchString(file) {
			return fmt.Errorf("it sets the install back")
		}
	}
	if err := checkFields(t, c); err != nil {
		return err
	}
	words := strings.Fields(anyCluster.ReplaceAllString(strings.Join(c.args[1:], " ")+" ", ""))
	end := 1
	for end < len(words) && slices.Contains([]string{"auth", "create", "rollout", "secret", "set"}, words[end-1]) && !strings.HasPrefix(words[end], "-") {
		end++
	}
	if os.Getenv("KUBEBUILDER_ASSETS") == "" || len(words) == 0 || strings.HasPrefix(words[0], "-") || words[0] == "krew" {
		return nil
	}
	for _, word := range words[end:] {
		if name := kubectlFlag.FindString(word); name != "" && !regexp.MustCompile(` `+name+`[=,]`).MatchString(kubectlHelp(t, words[:end]...)) {
			return fmt.Errorf("kubectl %v has no flag %s", words[:end], name)
		}
	}
	return nil
}

// checkFields: the fields of our kinds that a command prints are in the schema, as far as it says.
func checkFields(t *testing.T, c shellCommand) error {
	t.Helper()
	paths := fieldPath.FindAllStringSubmatch(strings.Join(c.args, " "), -1)
	files, _ := filepath.Glob("../config/crd/bases/*.yaml") // The pattern is well-formed.
	for i := 0; len(paths) > 0 && i < len(files); i++ {
		if len(crds) == i {
			crds = append(crds, apiextensionsv1.CustomResourceDefinition{})
			if err := yaml.Unmarshal([]byte(read(t, files[i])), &crds[i]); err != nil {
				return err
			}
		}
		crd := crds[i]
		names := append(crd.Spec.Names.ShortNames, crd.Spec.Names.Singular, crd.Spec.Names.Plural, crd.Name, crd.Spec.Names.Singular+"."+crd.Spec.Group)
		if !slices.ContainsFunc(c.args, func(s string) bool { name, _, _ := strings.Cut(s, "/"); return slices.Contains(names, name) }) {
			continue
		}
		for _, path := range paths {
			at := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			for name := range strings.SplitSeq(path[1], ".") {
				if at.Properties == nil {
					break
				}
				next, found := at.Properties[name]
				if !found {
					return fmt.Errorf("%s has no field %s", crd.Spec.Names.Kind, path[1])
				}
				at = next
			}
		}
	}
	return nil
}

var (
	kubectlFlag = regexp.MustCompile(`^(--[a-z][a-z-]*|-[a-zA-Z]$)`)
	// Its other flags are those of all commands.
	anyCluster = regexp.MustCompile(`(?:-n|--context|--kubeconfig)[ =]\S+ `)
	fieldPath  = regexp.MustCompile(`\.((?:spec|status)(?:\.\w+)+)`)
	crds       []apiextensionsv1.CustomResourceDefinition
	helpOf     = map[string]string{}
)

// kubectlHelp returns what kubectl says about the flags of a command: " --name=" and " -n,".
func kubectlHelp(t *testing.T, words ...string) string {
	t.Helper()
	key := strings.Join(words, " ")
	if helpOf[key] == "" {
		out, err := exec.CommandContext(t.Context(), filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), append(words, "--help")...).CombinedOutput()
		if err != nil || strings.HasPrefix(string(out), "kubectl controls") {
			t.Errorf("kubectl %s: %v", key, err)
		}
		_, options, _ := strings.Cut(string(out), "\nOptions:")
		helpOf[key] = options + " --as= --as-group= --request-timeout= --v="
	}
	return helpOf[key]
}

// The checks find what each of them is for.
func TestWrongCommandsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"    modelbox rendr -f x.yaml":                 "no command rendr",
		"    modelbox plan --filename x.yaml --strict": "unknown flag: --strict",
		"    modelbox undo":                            "arg",
		"    $ make installl\n    make nothing":        "no target installl",
		"    KIND=App make install":                    "nothing reads KIND",
		"    make deploy CERTS=self-managed":           "names no images",
		"    helm upgrade modelbox charts/modelbox-operator --reset-then-reuse-values --set webhook.image.name=x": "no value webhook.image.name",
		"    helm upgrade modelbox charts/modelbox-operator":                                                      "sets the values",
		"    kubectl apply -k config/webhook":                                                                     "sets the install back",
		"    for x in 1; do\n      kubectl -n ops apply \\\n        --kustomize=./config/policies\n    done":      "sets the install back",
		"    kubectl replace -f x.yaml":                                                                           "next apply",
		"    cat x | kubectl apply -f config/samples/no.yaml":                                                     "no such file",
		"```sh\nkubectl delete $(kubectl get -f config/no) # x\n```":                                              "no such file",
		"    kubectl -n ops rollout status --al deployment/x":                                                     "no flag --al",
		"    kubectl get mb/x -o jsonpath='{.status.modell.uri}'":                                                 "no field status.modell.uri",
		"see `modelbox pin --no`":                                                                                 "unknown flag: --no",
	} {
		if strings.Contains(want, "--al") && os.Getenv("KUBEBUILDER_ASSETS") == "" {
			continue
		}
		found := commandsOf("page", text+"\n")
		if len(found) == 0 {
			t.Errorf("%s: no command was found", text)
			continue
		}
		if err := check(t, found[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// The folders that a kustomization on a page has from this repository exist.
func TestRemoteFoldersExist(t *testing.T) {
	remote := regexp.MustCompile(`modelbox-operator//([\w/-]+)`)
	checked := 0
	for _, page := range pages() {
		for _, found := range remote.FindAllStringSubmatch(read(t, page), -1) {
			checked++
			if _, err := os.Stat(filepath.Join("..", found[1], "kustomization.yaml")); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d folders were found", checked)
	}
}
