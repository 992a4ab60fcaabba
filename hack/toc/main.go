// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command toc writes a table of contents before the first section of each page that has more than
// 200 lines without it: a line for each section, with its subsections.
package main

import (
	"log"
	"os"
	"regexp"
	"strings"
)

var (
	contents = regexp.MustCompile(`(?s)<!-- toc -->\n.*?<!-- /toc -->\n\n`)
	heading  = regexp.MustCompile(`(?m)^(##|###) (.+)$`)
	dropped  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

func main() {
	for _, file := range os.Args[1:] {
		data, err := os.ReadFile(file)
		if err != nil {
			log.Fatal(err)
		}
		page := contents.ReplaceAllString(string(data), "")
		first := strings.Index(page, "\n## ") + 1
		if strings.Count(page, "\n") > 200 && first > 0 {
			page = page[:first] + table(page[first:]) + page[first:]
		}
		if page != string(data) {
			if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// table returns the table of contents of the sections, whose anchors are those of GitHub.
func table(sections string) string {
	var out strings.Builder
	separator := ""
	for _, h := range heading.FindAllStringSubmatch(sections, -1) {
		before, after := separator, " · "
		if h[1] == "##" {
			before, after = "\n- ", ": "
		}
		separator = after
		anchor := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(h[2]), ""), " ", "-")
		out.WriteString(before + "[" + strings.ReplaceAll(h[2], "`", "") + "](#" + anchor + ")")
	}
	return "<!-- toc -->" + out.String() + "\n<!-- /toc -->\n\n"
}
