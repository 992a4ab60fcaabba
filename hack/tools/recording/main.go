// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command recording runs a command in a terminal, and writes what it shows as an SVG that plays
// it, without a script and without a font of its own.
//
//	recording -title "make demo" -desc "..." -out docs/pictures/demo.svg make demo
//
// It is a program of this repository because the known ones are not maintained (termtosvg,
// svg-term), or write no SVG that plays (agg, VHS, freeze).
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/creack/pty"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func run() error {
	title := flag.String("title", "", "title of the picture")
	desc := flag.String("desc", "", "description of the picture, for readers who do not see it")
	out := flag.String("out", "", "file to write")
	still := flag.String("still", "", "beginning of the line that is at the top of the picture where it does not play")
	flag.Parse()
	if flag.NArg() == 0 || *out == "" {
		return errors.New("name the file and the command: recording -out FILE COMMAND [ARGUMENT]")
	}
	lines, err := record(exec.Command(flag.Arg(0), flag.Args()[1:]...), os.Stdout)
	if err != nil {
		return err
	}
	lines = slices.Insert(lines, 0, line{text: "$ " + strings.Join(flag.Args(), " ")})
	picture := render(lines, frame{title: *title, desc: *desc, still: *still})
	return os.WriteFile(*out, []byte(picture), 0o644)
}

// record runs a command in a terminal, and returns the lines that it shows. It copies them to out, too.
func record(command *exec.Cmd, out io.Writer) ([]line, error) {
	command.Env = slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "CI=") || strings.HasPrefix(e, "NO_COLOR=") || strings.HasPrefix(e, "MAKE")
	})
	command.Env = append(command.Env, "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	terminal, err := pty.StartWithSize(command, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return nil, err
	}
	defer terminal.Close() //nolint:errcheck // What was read is complete.
	screen, began, buffer := &screen{}, time.Now(), make([]byte, 4096)
	for {
		n, err := terminal.Read(buffer)
		_, _ = out.Write(buffer[:n])
		screen.write(string(buffer[:n]), time.Since(began))
		if err != nil { // EIO at the end of the command, on Linux.
			break
		}
	}
	if err := command.Wait(); err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	return screen.lines, nil
}
