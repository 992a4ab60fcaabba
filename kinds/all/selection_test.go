// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package all_test

import (
	"flag"
	"io"
	"strings"
	"testing"

	"github.com/modelbox-operator/modelbox-operator/kinds/all"
)

func TestSelection(t *testing.T) {
	const every = "ModelBox App Genericdaemon UnitedDeployment Eru"
	for args, want := range map[string]string{
		"":                              every,
		"--kinds=":                      every,
		"--kinds=ModelBox":              "ModelBox",
		"--kinds=app,MODELBOX":          "ModelBox App",
		"--kinds=App --kinds=Eru":       "App Eru",
		"--kinds=-App":                  "ModelBox Genericdaemon UnitedDeployment Eru",
		"--kinds=-App --kinds=-eru,":    "ModelBox Genericdaemon UnitedDeployment",
		"--kinds=ModelBox,App,-App":     "ModelBox",
		"--kinds=Modelbox --kinds=-eru": "ModelBox",
		"--kinds=modelboxes":            `there is no kind "modelboxes": it must be one of ` + strings.ReplaceAll(every, " ", ", "),
		"--kinds=App,-":                 `there is no kind "": it must be one of`,
		"--kinds=App, Eru":              `there is no kind " Eru"`,
		"--kinds=App --kinds=-App":      "it leaves out all of",
		"--kinds=-ModelBox,-App,-Eru,-Genericdaemon,-UnitedDeployment": "it leaves out all of",
	} {
		var selection all.Selection
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		selection.AddFlag(flags)
		var words []string
		if args != "" {
			words = strings.Split(args, " --")
		}
		for i := 1; i < len(words); i++ {
			words[i] = "--" + words[i]
		}
		if err := flags.Parse(words); err != nil {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", args, err, want)
			}
			continue
		}
		var got []string
		for _, kind := range selection.Of(all.Kinds) {
			got = append(got, kind.GVK.Kind)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q selects %q, want %q", args, got, want)
		}
	}
}
