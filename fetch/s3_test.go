// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// The keys of these tests: gofakes3 keeps keys for the whole process.
const keyID, secretKey = "ASIA-of-the-test", "secret-of-the-role"

// bucketOf is a server of S3 that knows one pair of keys. It says the checksums of objects as Amazon does.
func bucketOf(t *testing.T, objects map[string][]byte) http.Handler {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), "bucket"); err != nil {
		t.Fatal(err)
	}
	for name, content := range objects {
		if _, err := backend.PutObject(t.Context(), "bucket", name, map[string]string{}, bytes.NewReader(content), int64(len(content))); err != nil {
			t.Fatal(err)
		}
	}
	store := gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{keyID: secretKey})).Server()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, found := objects[strings.TrimPrefix(r.URL.Path, "/bucket/")]
		if found && r.Header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
			sum := binary.BigEndian.AppendUint64(nil, crc64.Checksum(content, crc64.MakeTable(0x9a6c9329ac4bc9b5)))
			if strings.HasSuffix(r.URL.Path, "/damaged.bin") {
				sum[0]++
			}
			w.Header().Set("X-Amz-Checksum-Crc64nvme", base64.StdEncoding.EncodeToString(sum))
			w.Header().Set("X-Amz-Checksum-Type", "FULL_OBJECT")
		}
		store.ServeHTTP(w, r)
	})
}

// fetchS3 runs the program in this process. The agent is at its own address, past a proxy that is not there; s3 is an https:// server.
func fetchS3(t *testing.T, s3, agent *httptest.Server, env map[string]string, args ...string) (volume, last, log string) {
	t.Helper()
	options := trusting(s3)
	options.Proxy = func(request *http.Request) (*url.URL, error) {
		if request.URL.Scheme == "http" {
			return &url.URL{Scheme: "http", Host: "proxy.test:3128"}, nil
		}
		return nil, nil
	}
	options.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "169.254.170.23:80" && agent != nil {
			address = agent.Listener.Addr().String()
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	volume = t.TempDir()
	code, log, last := runHere(t, options, env, volume, args...)
	if (code == 0) != (last == "" || last[0] == '{') {
		t.Fatal(code, last)
	}
	return volume, last, log
}

func TestAFolderOfABucketIsFetched(t *testing.T) {
	t.Parallel()
	server := secure(bucketOf(t, map[string][]byte{
		"models/bert/config.json": []byte("{}"), "models/bert/onnx/a+b c=d&模型.bin": []byte("weights"), "models/bert/onnx/": {}, "models/bert/big.bin": make([]byte, 200_000),
		"models/bertx/other": []byte("x"), "models/bad/damaged.bin": []byte("weights"), "models/empty/": {},
	}))
	defer server.Close()
	env := map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": keyID, "AWS_SECRET_ACCESS_KEY": secretKey}
	for _, each := range []struct {
		args []string
		want string
		has  []string
	}{
		{args: []string{"--uri", "s3://bucket/models/bert/"}, has: []string{"big.bin", "config.json", "onnx/a+b c=d&模型.bin"}},
		{args: []string{"--uri", "s3://bucket/models/bert/", "--exclude", "*.json", "--include", "onnx/*", "--include", "config.json", "--size-limit", "100000"}, has: []string{"onnx/a+b c=d&模型.bin"}},
		{args: []string{"--uri", "s3://bucket/models/bert/", "--size-limit", "10000"}, want: "[TooBig] the model has more than the 9.8 KiB of spec.model.sizeLimit"},
		{args: []string{"--uri", "s3://bucket/models/bert/", "--max-files", "2"}, want: "[TooBig] the model has more than 2 files"},
		{args: []string{"--uri", "s3://bucket/models/bert/", "--include", "*.gguf"}, want: "[NotFound] spec.model.include: *.gguf matches no file"},
		{args: []string{"--uri", "s3://bucket/models/bad/"}, want: "[WrongHash] the checksum CRC-64/NVME is "},
		{args: []string{"--uri", "s3://bucket/models/empty/"}, want: "[NotFound] the bucket has no file below models/empty/, but below models/bad/, models/bert/, models/bertx/: check spec.model.uri"},
		{args: []string{"--uri", "s3://bucket/models/empty/", "--include", "*.gguf"}, want: "[NotFound] the bucket has no file below models/empty/, but below models/bad/"},
		{args: []string{"--uri", "s3://bucket/models/bert/", "--exclude", "*"}, want: "[NotFound] spec.model.exclude leaves out each file of the model"},
		{args: []string{"--uri", "s3://bucket/models/none/"}, want: "[NotFound] the bucket has no file below models/none/, but below models/bad/, models/bert/, models/bertx/: check spec.model.uri"},
		{args: []string{"--uri", "s3://bucket/models/bert/2/"}, want: "[NotFound] the bucket has no file below models/bert/2/, but below models/bert/onnx/: check spec.model.uri"},
		{args: []string{"--uri", "s3://bucket/none/"}, want: "[NotFound] the bucket has no file below none/, but below models/: check spec.model.uri"},
		{args: []string{"--uri", "s3://other/models/"}, want: "[NotFound] 404 Not Found (NoSuchBucket)"},
		{args: []string{"--uri", "s3://bucket/models/bert/", "--sha256", sum(nil)}, want: "[Invalid] hf:// and a folder of s3:// have several files"},
	} {
		volume, last, log := fetchS3(t, server, nil, env, each.args...)
		if !strings.HasPrefix(last, each.want) || strings.Contains(log, secretKey) || each.has != nil && strings.Count(log, "(verified)") != len(each.has) {
			t.Errorf("%q: %s, want %s\n%s", each.args, last, each.want, log)
		}
		var has []string
		_ = filepath.WalkDir(filepath.Join(volume, "model"), func(path string, entry os.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				name, _ := filepath.Rel(filepath.Join(volume, "model"), path)
				has = append(has, name)
			}
			return nil
		})
		if !slices.Equal(has, each.has) || len(leftovers(t, volume)) > 0 {
			t.Errorf("%q: %q, want %q", each.args, has, each.has)
		}
	}
}

// Objects are verified by the strongest checksum of the whole object that the bucket says. That of parts verifies nothing.
func TestTheChecksumsOfABucket(t *testing.T) {
	t.Parallel()
	content := []byte("weights")
	sha, sha1 := sha256.Sum256(content), sha1.Sum(content)
	sums := map[string][]byte{
		"Sha256": sha[:], "Sha1": sha1[:], "Crc32": binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(content)),
		"Crc32c":    binary.BigEndian.AppendUint32(nil, crc32.Checksum(content, crc32.MakeTable(crc32.Castagnoli))),
		"Crc64nvme": binary.BigEndian.AppendUint64(nil, crc64.Checksum(content, crc64.MakeTable(0x9a6c9329ac4bc9b5))),
	}
	for name, right := range sums {
		wrong := bytes.Clone(right)
		wrong[0]++
		for _, each := range []struct {
			sum       []byte
			kind, log string
		}{{right, "FULL_OBJECT", "(verified)"}, {right, "", "(verified)"}, {wrong, "FULL_OBJECT", "[WrongHash] the checksum "}, {wrong, "COMPOSITE", "(not verified"}, {wrong[:3], "FULL_OBJECT", "(not verified"}} {
			store := bucketOf(t, map[string][]byte{"a/weights": content})
			server := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Amz-Checksum-Mode") == "ENABLED" {
					w.Header().Set("X-Amz-Checksum-"+name, base64.StdEncoding.EncodeToString(each.sum))
					w.Header().Set("X-Amz-Checksum-Type", each.kind)
					_, _ = w.Write(content)
					return
				}
				store.ServeHTTP(w, r)
			}))
			env := map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": keyID, "AWS_SECRET_ACCESS_KEY": secretKey}
			if _, last, log := fetchS3(t, server, nil, env, "--uri", "s3://bucket/a/"); !strings.Contains(log, each.log) {
				t.Errorf("%s %s: %s\n%s", name, each.kind, last, log)
			}
			server.Close()
		}
	}
}

// What a checksum of the bucket has verified is kept, whatever the bucket answers to the next start,
// and is not fetched again by the one after that.
func TestWhatABucketHasVerifiedIsKept(t *testing.T) {
	t.Parallel()
	objects := map[string][]byte{"m/a": bytes.Repeat([]byte("a"), 100_000), "m/b": bytes.Repeat([]byte("b"), 100_000)}
	store := bucketOf(t, objects)
	var refuse string
	var asked []string
	server := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := strings.TrimPrefix(r.URL.Path, "/bucket/"); key == refuse || refuse == "m/" && objects[key] != nil {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<Error><Code>ExpiredToken</Code></Error>")
			return
		} else if objects[key] != nil && r.Method == http.MethodGet {
			asked = append(asked, key)
		}
		store.ServeHTTP(w, r)
	}))
	defer server.Close()
	volume := t.TempDir()
	env := map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": keyID, "AWS_SECRET_ACCESS_KEY": secretKey}
	for _, refuse = range []string{"m/b", "m/", "m/b", ""} {
		code, log, last := runHere(t, trusting(server), env, volume, "--uri", "s3://bucket/m/", "--connections", "1")
		if (code == 0) != (refuse == "") || code != 0 && !strings.Contains(last, "the temporary credentials have expired") {
			t.Fatal(refuse, code, last, log)
		}
		if kept, err := os.Stat(filepath.Join(append([]string{volume}, append(leftovers(t, volume), "model", "a")...)...)); refuse != "" && (err != nil || kept.Size() != 100_000) {
			t.Error(refuse, kept, err)
		}
	}
	mustHave(t, filepath.Join(volume, "model"), map[string][]byte{"a": objects["m/a"], "b": objects["m/b"]})
	if !slices.Equal(asked, []string{"m/a", "m/b"}) {
		t.Error("what is there is fetched again:", asked)
	}
}

// A bucket's list is as little to be trusted as an archive.
func TestListsOfABucketThatAreRefused(t *testing.T) {
	t.Parallel()
	object := func(key string, size int) string {
		return fmt.Sprintf("<Contents><Key>%s</Key><Size>%d</Size><ETag>&quot;1&quot;</ETag></Contents>", key, size)
	}
	const end = "<IsTruncated>false</IsTruncated>"
	for name, each := range map[string]struct{ list, want string }{
		"outside":              {object("a/../../x", 1), "[Refused] the list has a file that cannot be stored: ../../x"},
		"absolute":             {object("a//x", 1), "[Refused] the list has a file that cannot be stored: /x"},
		"a back-slash":         {object(`a/b\c`, 1), "[Refused] the list has a file that cannot be stored"},
		"not below":            {object("b/x", 1), "[Refused] the bucket lists an object that is not below the folder, or has no size: b/x"},
		"a full folder":        {object("a/b/", 1), "[Refused] the list has a file that cannot be stored: b/"},
		"a file and a folder":  {object("a/b", 1) + object("a/b/c", 1) + end, "[Refused] the model has b twice, as a file or as a directory"},
		"overflowing":          {object("a/b", 9223372036854775807) + object("a/c", 9223372036854775807) + end, "[TooBig] the model has more than"},
		"without an end":       {object("a/b", 0) + "<IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>", "[TooBig] the model has more than 50 files"},
		"empty without an end": {"<IsTruncated>true</IsTruncated><NextContinuationToken>again</NextContinuationToken>", "[Refused] the model has a list without an end"},
		"no XML":               {"<Contents><Key>", "[Invalid] the bucket's server answers with something that is not of S3"},
		"16 MiB":               {strings.Repeat("<Contents/>", 16<<20/11), "[Invalid] the bucket's server answers with something that is not of S3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := secure(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "<ListBucketResult>"+each.list+"</ListBucketResult>")
			}))
			defer server.Close()
			if _, last, _ := fetchS3(t, server, nil, map[string]string{"AWS_ENDPOINT_URL": server.URL}, "--uri", "s3://bucket/a/", "--max-files", "50"); !strings.HasPrefix(last, each.want) {
				t.Errorf("%s, want %s", last, each.want)
			}
		})
	}
}

// The keys come from STS, or from the agent of EKS Pod Identity, for the token of the service account. Nothing else is asked.
func TestIdentitiesWithoutKeys(t *testing.T) {
	t.Parallel()
	const session = "session-of-the-role"
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("token-of-the-account\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	store := bucketOf(t, map[string][]byte{"models/a.bin": []byte("weights")})
	s3 := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Security-Token") != session {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(s3.Close)
	var asked atomic.Int32
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	sts := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("RoleArn") != "arn:aws:iam::1:role/models" || r.FormValue("WebIdentityToken") != "token-of-the-account" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, "<ErrorResponse><Error><Code>AccessDenied</Code><Message>"+r.FormValue("WebIdentityToken")+"</Message></Error></ErrorResponse>")
			return
		}
		_, _ = fmt.Fprintf(w, "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>%s</AccessKeyId><SecretAccessKey>%s</SecretAccessKey>"+
			"<SessionToken>%s</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>", keyID, secretKey, session, expires)
	}))
	t.Cleanup(sts.Close)
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Path != "/v1/credentials" || r.Header.Get("Authorization") != "token-of-the-account" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":%q}`, keyID, secretKey, session, expires)
	}))
	t.Cleanup(agent.Close)
	role := map[string]string{"AWS_ROLE_ARN": "arn:aws:iam::1:role/models", "AWS_WEB_IDENTITY_TOKEN_FILE": token, "AWS_ENDPOINT_URL_STS": sts.URL}
	pod := map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token}
	for name, each := range map[string]struct {
		env, change map[string]string
		asks        int32
		want        string
	}{
		"a role":             {env: role, asks: 1},
		"a pod identity":     {env: pod, asks: 1},
		"both: the role":     {env: role, change: pod, asks: 1},
		"no identity":        {want: "[Denied] 403 Forbidden"},
		"another role":       {env: role, change: map[string]string{"AWS_ROLE_ARN": "arn:aws:iam::1:role/other"}, asks: 1, want: "[Denied] STS: 403 Forbidden (AccessDenied): check AWS_ROLE_ARN"},
		"half a role":        {env: map[string]string{"AWS_ROLE_ARN": "arn"}, want: "[Invalid] one of AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE is set"},
		"no token":           {env: role, change: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/does/not/exist"}, want: "[Invalid] the token of the service account cannot be read"},
		"an endless token":   {env: role, change: map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/dev/zero"}, want: "[Invalid] the file of the service account's token has no token"},
		"STS without TLS":    {env: role, change: map[string]string{"AWS_ENDPOINT_URL_STS": agent.URL}, want: "[Refused] http://127.0.0.1"},
		"STS is link-local":  {env: role, change: map[string]string{"AWS_ENDPOINT_URL_STS": "https://169.254.170.23"}, want: "[Refused] 169.254.170.23 is a link-local"},
		"the metadata":       {env: pod, change: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.169.254/latest/meta-data/iam"}, want: "[Refused] AWS_CONTAINER_CREDENTIALS_FULL_URI is not the agent"},
		"an agent elsewhere": {env: pod, change: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": agent.URL + "/v1/credentials"}, want: "[Refused] AWS_CONTAINER_CREDENTIALS_FULL_URI is not the agent"},
		"an agent's refusal": {env: pod, change: map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v2"}, asks: 1, want: "[Denied] the agent of EKS Pod Identity: 403 Forbidden: check the pod identity association"},
		"pod without token":  {env: pod, change: map[string]string{"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": ""}, want: "[Invalid] AWS_CONTAINER_CREDENTIALS_FULL_URI is set without"},
	} {
		env := map[string]string{"AWS_ENDPOINT_URL": s3.URL, "AWS_REGION": "eu-central-1"}
		maps.Copy(env, each.env)
		maps.Copy(env, each.change)
		asked.Store(0)
		for _, uri := range []string{"s3://bucket/models/", "s3://bucket/models/a.bin"} {
			volume, last, log := fetchS3(t, s3, agent, env, "--uri", uri)
			if !strings.HasPrefix(last, each.want) || each.want == "" && last != "" && last[0] != '{' || strings.Contains(log+last, "of-the-") {
				t.Errorf("%s: %s, want %s\n%s", name, last, each.want, log)
			}
			if got, err := os.ReadFile(filepath.Join(volume, "model", "a.bin")); (err == nil) != (each.want == "") || err == nil && string(got) != "weights" {
				t.Error(name, err)
			}
		}
		if got := asked.Load(); got != 2*each.asks {
			t.Errorf("%s: STS and the agent are asked %d times, want once for each of two fetches: %d", name, got, 2*each.asks)
		}
	}
}

// 100,000 objects cost little memory before the first byte, and their names alone are asked for,
// with progress from the beginning.
func TestAHugeFolder(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := secure(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("list-type") {
			asked.Add(1)
			w.WriteHeader(http.StatusNotFound)
			return
		}
		page, _ := strconv.Atoi(r.URL.Query().Get("continuation-token"))
		fmt.Fprintf(w, "<ListBucketResult><IsTruncated>%t</IsTruncated>", page < 99)
		if page < 99 {
			fmt.Fprintf(w, "<NextContinuationToken>%d</NextContinuationToken>", page+1)
		}
		for i := range 1000 {
			fmt.Fprintf(w, "<Contents><Key>m/a/long/name/of/a/folder/in/a/bucket/%d</Key><Size>1</Size><ETag>&quot;0123456789abcdef0123456789abcdef&quot;</ETag></Contents>", page*1000+i)
		}
		_, _ = io.WriteString(w, "</ListBucketResult>")
	}))
	defer server.Close()
	p := newProgram(t, server, t.TempDir(), "--uri", "s3://bucket/m/", "--size-limit", "1000000000000", "--progress-every", "10ms")
	p.Env = append(p.Env, "AWS_ENDPOINT_URL="+server.URL)
	p.Path = built(t)
	p.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	most, _ := peak(p.start(t).Cmd)
	if last := p.lastWord(t); !strings.HasPrefix(last, "[NotFound] 404") || asked.Load() > 16 || most > 96<<20 {
		t.Errorf("%s, after %d requests with %d MiB", last, asked.Load(), most>>20)
	}
	if log := p.output.String(); !strings.HasPrefix(log, "asking for the files of the model\nlist: ") || strings.Count(log, "list: ") < 2 {
		t.Error(log)
	}
	t.Logf("100,000 objects cost %d MiB", most>>20)
}
