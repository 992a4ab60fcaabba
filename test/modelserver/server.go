// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options of a Server.
type Options struct {
	// Slow is how long the model takes below /slow/, and Paced below /paced/.
	Slow, Paced time.Duration
	// Token is the bearer token that /private/ requires.
	Token string
	// Plain is the host, with a port if it is not 80, of this server's http:// URLs, which
	// /redirect/http/ leads to.
	Plain string
}

// Server is an http.Handler. The last segment of a path is the name of a file:
//
//	model.tar.zst, model.tar.gz, model.tar, model.zip   the model, also as model-ANYTHING.zip
//	weights.safetensors                                  its largest file
//	tiny-1.gguf, tiny-2.gguf                             language models with random weights
//	truncated.tar.gz                                     the first half of an archive
//	slip.zip, slip.tar.gz                                with an entry ../../x
//	link.tar.gz                                          with a symbolic link to /etc/passwd
//	bomb.tar.zst                                         small, and unpacks to 16 GiB
//	big.safetensors, big.tar.gz                          with Big bytes
//
// The segments before it say how it is served:
//
//	/slow/, /paced/                                      in the time of the options
//	/cut/                                                each response ends after a third of the file
//	/private/                                            401 without a bearer token, 403 with a wrong one
//	/redirect/http/, /ftp/, /metadata/, /loopback/       a redirect to a URL that is not followed
//	/redirect/here/                                      a redirect to the same file without this prefix
//
// Everything else is 404. /log has the requests so far, as a list of Access in JSON, and
// /files the hashes of the files. A hub with the model is below /api/models/ (Hub).
type Server struct {
	options Options
	files   map[string][]byte
	hub     map[string][]byte

	mu  sync.Mutex
	log map[Access]int
	// interrupted counts the requests for the file that is served last.
	interrupted int
}

// Access is one kind of request, and how many of them there were.
type Access struct {
	Method string `json:"method"`
	Path   string `json:"path"`
	Range  string `json:"range,omitempty"`
	Count  int    `json:"count"`
}

// New returns a Server.
func New(options Options) *Server {
	return &Server{options: options, files: bodies(), hub: hub(), log: map[Access]int{}}
}

// Body returns what the last segment of a URL stands for, or nil.
func (s *Server) Body(name string) []byte {
	if body := s.files[name]; body != nil {
		return body
	}
	return s.files[numbered.ReplaceAllString(name, "model.")]
}

// numbered is the beginning of model-7.tar.gz, one of the many names of the model.
var numbered = regexp.MustCompile(`^model-[A-Za-z0-9-]+\.`)

// ServeHTTP serves a request, and notes it in the log.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/log":
		writeJSON(w, s.accesses())
	case "/files":
		writeJSON(w, s.sums())
	default:
		s.count(r)
		s.serve(w, r)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if body, found := s.hub[r.URL.Path]; found {
		if s.interrupts(r) {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
		return
	}
	body := s.Body(path.Base(r.URL.Path))
	if body == nil {
		http.NotFound(w, r)
		return
	}
	switch first, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/"); first {
	case "slow":
		w = pace(w, r, len(body), s.options.Slow)
	case "paced":
		w = pace(w, r, len(body), s.options.Paced)
	case "cut":
		w = &cutting{ResponseWriter: w, left: len(body)/3 + 1}
	case "private":
		if status := s.permission(r); status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
	case "redirect":
		http.Redirect(w, r, s.target(rest), http.StatusFound)
		return
	}
	w.Header().Set("Etag", `"`+SHA256(body)+`"`) // The download can be resumed.
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// permission returns 200 for the right bearer token.
func (s *Server) permission(r *http.Request) int {
	switch r.Header.Get("Authorization") {
	case "Bearer " + s.options.Token:
		return http.StatusOK
	case "":
		return http.StatusUnauthorized
	}
	return http.StatusForbidden
}

// target returns where KIND/NAME below /redirect/ leads to.
func (s *Server) target(rest string) string {
	kind, name, _ := strings.Cut(rest, "/")
	switch kind {
	case "http":
		return "http://" + s.options.Plain + "/" + name
	case "ftp":
		return "ftp://" + s.options.Plain + "/" + name
	case "metadata":
		return "http://169.254.169.254/latest/meta-data/" + name
	case "loopback":
		return "http://127.0.0.1/" + name
	}
	return "/" + name
}

func (s *Server) count(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log[Access{Method: r.Method, Path: r.URL.Path, Range: r.Header.Get("Range")}]++
}

// accesses returns the log, sorted.
func (s *Server) accesses() []Access {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Access{}
	for access, count := range s.log {
		access.Count = count
		all = append(all, access)
	}
	slices.SortFunc(all, func(a, b Access) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method), cmp.Compare(a.Range, b.Range))
	})
	return all
}

func (s *Server) sums() map[string]string {
	sums := map[string]string{}
	for name := range maps.Keys(s.files) {
		sums[name] = SHA256(s.files[name])
	}
	return sums
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(value); err != nil {
		http.Error(w, fmt.Sprint(err), http.StatusInternalServerError)
	}
}
