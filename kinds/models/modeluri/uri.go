// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package modeluri reads the URI of a model that a container fetches, and the names of its files. Admission and the program that fetches have it in
// common, so that what is admitted can be fetched, and so have the two processes what they tell each other. It does no I/O.
package modeluri

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strings"
	"unicode"
)

// The schemes of a model that is fetched.
const (
	HTTPS = "https"
	HTTP  = "http"
	S3    = "s3"
	Hub   = "hf"
)

// URI is what the URI of a model stands for.
type URI struct {
	Scheme string
	// URL is that of https:// and http://.
	URL *url.URL
	// File is the name of the file at https://, http:// and s3://: the last segment of the path. Empty is a folder of a bucket.
	File string
	// Bucket and Key are those of s3://. The key of a folder ends with a slash.
	Bucket, Key string
	// Org, Name, Commit and Path are those of hf://org/name@commit/path. An empty path is all of the commit.
	Org, Name, Commit, Path string
}

var (
	hubModel   = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)/([A-Za-z0-9][A-Za-z0-9._-]*)@([^/]+)(?:/(.*))?$`)
	hubCommit  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$`)
)

// maxKey is the maximum length of a key of S3 in bytes.
const maxKey = 1024

// Parse reads a URI whose scheme is in lower case. Its error says what to write instead, and follows the name of the field.
func Parse(text string) (URI, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	out := URI{Scheme: scheme}
	var err error
	switch scheme {
	case HTTPS, HTTP:
		err = out.web(text)
	case S3:
		err = out.bucket(rest)
	case Hub:
		err = out.hub(rest)
	default:
		err = errors.New("must begin with https://, http://, s3://, hf://, oci:// or pvc://")
	}
	return out, err
}

func (u *URI) web(text string) error {
	target, err := url.Parse(text)
	switch {
	case err != nil || target.Hostname() == "" || strings.Contains(target.RawQuery, " "):
		return errors.New("must be a URL such as https://models.example.com/bert.tar.zst, with %25 for a per cent sign, and %20 for a space of the query")
	case target.User != nil:
		return errors.New("has a user name, which every reader of the object sees; use MODEL_USERNAME and MODEL_PASSWORD in the Secret of spec.model.credentials")
	case target.Fragment != "":
		return errors.New("has a fragment, which no server gets; remove it, or write # as %23")
	}
	if u.URL, err = Host(target, false); err != nil {
		return err
	}
	u.File, err = lastSegment(target.Path)
	return err
}

// lastSegment returns the name that a file gets from the path of its URL.
func lastSegment(path string) (string, error) {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch lower := strings.ToLower(name); {
	case !isPath(name):
		return "", errors.New("must end with the name of a file of at most 255 bytes, such as bert.tar.zst")
	case strings.HasSuffix(lower, ".xz"), strings.HasSuffix(lower, ".txz"):
		return "", errors.New("is compressed by xz, which is not unpacked; use .tar.zst or .tar.gz")
	}
	return name, nil
}

func (u *URI) bucket(rest string) (err error) {
	u.Bucket, u.Key, _ = strings.Cut(rest, "/")
	folder := strings.TrimSuffix(u.Key, "/")
	switch {
	case !bucketName.MatchString(u.Bucket) || strings.Contains(u.Bucket, "..") || folder == "":
		return errors.New("must have a bucket and a key: s3://bucket/key, or s3://bucket/folder/")
	case len(u.Key) > maxKey:
		return fmt.Errorf("has a key of more than %d bytes, which no bucket has", maxKey)
	case folder == u.Key:
		u.File, err = lastSegment(u.Key)
	case strings.HasSuffix(folder, "/") || !isPath(folder[strings.LastIndexByte(folder, '/')+1:]):
		return errors.New("must have a folder without empty segments, \".\" and \"..\" at its end: s3://bucket/folder/")
	}
	return err
}

func (u *URI) hub(rest string) error {
	parts := hubModel.FindStringSubmatch(rest)
	switch {
	case parts == nil:
		return errors.New("must be a commit of a model: hf://org/name@commit")
	case !hubCommit.MatchString(parts[3]):
		return fmt.Errorf("%q is a branch, a tag or a short commit, which can stand for other files later; use the 40 hexadecimal digits of the commit", parts[3])
	}
	u.Org, u.Name, u.Commit, u.Path = parts[1], parts[2], parts[3], strings.TrimSuffix(parts[4], "/")
	if u.Path != "" && !isPath(u.Path) {
		return errors.New("must have a relative path after the commit, or none: without empty segments, \".\" and \"..\", at most 255 bytes between slashes, 2048 in all, and 64 directories")
	}
	return nil
}

// isPath reports whether files can have a path, as it is written.
func isPath(path string) bool {
	clean, err := Clean(path)
	return err == nil && clean == path && clean != "."
}

const (
	// maxSegment is the longest name of a file or directory in bytes, as Linux has it (NAME_MAX).
	maxSegment = 255
	// maxName is the longest name with its directories in bytes. Linux allows 4096 (PATH_MAX), of which the place where
	// the volume is mounted takes some.
	maxName = 2048
	// maxDepth is how many directories deep a file may be.
	maxDepth = 64
)

// The reasons for which Clean refuses a name. Each completes "the archive has an entry ...".
var (
	errOutside = errors.New("outside of its directory")
	errEmpty   = errors.New("without a name")
	errBytes   = errors.New("with a NUL byte or a back-slash in its name")
	errTooLong = errors.New("with a name of more than 255 bytes, or of more than 2048 with its directories")
	errTooDeep = errors.New("more than 64 directories deep")
)

// Clean returns the slash-separated name that a server or an archive gives to a file, in its shortest form: a path below the
// directory that it is joined to. The root itself ("./") is ".". A ".." is refused even where it would stay inside.
func Clean(name string) (string, error) {
	switch {
	case name == "":
		return "", errEmpty
	case strings.ContainsAny(name, "\x00\\"):
		return "", errBytes
	case strings.HasPrefix(name, "/"):
		return "", errOutside
	case len(name) > maxName:
		return "", errTooLong
	}
	if err := checkSegments(strings.Split(name, "/")); err != nil {
		return "", err
	}
	return path.Clean(name), nil
}

func checkSegments(segments []string) error {
	if len(segments) > maxDepth {
		return errTooDeep
	}
	for _, segment := range segments {
		if segment == ".." {
			return errOutside
		}
		if len(segment) > maxSegment {
			return errTooLong
		}
	}
	return nil
}

// Argument is a model in the argument --models of the program that fetches, which is a list of them as JSON.
type Argument struct {
	// Name is that of spec.models; empty is spec.model.
	Name      string   `json:"name,omitempty"`
	URI       string   `json:"uri"`
	SHA256    string   `json:"sha256,omitempty"`
	Volume    string   `json:"volume,omitempty"`
	Directory string   `json:"directory"`
	SizeLimit int64    `json:"sizeLimit"`
	Shared    bool     `json:"shared,omitempty"`
	Include   []string `json:"include,omitempty"`
	Exclude   []string `json:"exclude,omitempty"`
	// EnvPrefix begins the names of the variables that have this model's credentials.
	EnvPrefix string `json:"envPrefix,omitempty"`
}

// Message is the termination message of a fetch that has succeeded, as JSON.
type Message struct {
	Models []Fetched `json:"models"`
}

// Fetched is what a Message says of a model that is complete.
type Fetched struct {
	// Name is that of spec.models; empty is spec.model.
	Name string `json:"name,omitempty"`
	// Digest is the sha256 of the file, or that of what sha256sum prints for the files. Empty is unknown, as Bytes then are.
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
}

// maxPattern is the maximum length of a pattern in bytes.
const maxPattern = 128

// Pattern selects files by their names, as those of "hf download" do (fnmatch of Python): * stands for any characters, / too, ? for
// one, [a-z] for one of these, [!a-z] for one of the others. A pattern that ends with / stands for everything below it.
type Pattern struct {
	text    string
	matches *regexp.Regexp
}

// ParsePattern reads a pattern. Its error follows the name of the field.
func ParsePattern(text string) (Pattern, error) {
	if text == "" || len(text) > maxPattern || strings.ContainsFunc(text, unicode.IsControl) {
		return Pattern{}, fmt.Errorf("must be a pattern of 1 to %d bytes without control characters, such as *.safetensors", maxPattern)
	}
	whole := text
	if strings.HasSuffix(text, "/") {
		whole += "*"
	}
	var out strings.Builder
	for rest := []rune(whole); len(rest) > 0; {
		class, after := brackets(rest)
		switch {
		case class != "":
			out.WriteString(class)
			rest = after
			continue
		case rest[0] == '*':
			out.WriteString(".*")
		case rest[0] == '?':
			out.WriteByte('.')
		default:
			out.WriteString(regexp.QuoteMeta(string(rest[0])))
		}
		rest = rest[1:]
	}
	matches, err := regexp.Compile(`(?s)\A(?:` + out.String() + `)\z`)
	if err != nil {
		return Pattern{}, fmt.Errorf("must be a pattern; [z-a] is no range of characters")
	}
	return Pattern{text, matches}, nil
}

// brackets returns the class of characters that a pattern begins with, and what follows it. Without an end, [ is a character.
func brackets(pattern []rune) (class string, after []rune) {
	if pattern[0] != '[' {
		return "", nil
	}
	out, at := "[", 1
	if at < len(pattern) && pattern[at] == '!' {
		out, at = "[^", 2
	}
	for first := at; at < len(pattern); at++ {
		switch {
		case pattern[at] == ']' && at > first:
			return out + "]", pattern[at+1:]
		case pattern[at] == '-':
			out += "-"
		default:
			out += regexp.QuoteMeta(string(pattern[at]))
		}
	}
	return "", nil
}

// Match reports whether a file with a name is selected.
func (p Pattern) Match(name string) bool { return p.matches.MatchString(name) }

func (p Pattern) String() string { return p.text }
