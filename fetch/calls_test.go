// Copyright The ModelBox Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// writing are the calls that a volume without space may refuse, each with the argument that is the
// file or directory.
var writing = map[uint32]int{
	unix.SYS_OPENAT: 0, unix.SYS_MKDIRAT: 0, unix.SYS_RENAMEAT: 0, unix.SYS_RENAMEAT2: 0, unix.SYS_FTRUNCATE: 0,
	unix.SYS_WRITE: 0, unix.SYS_PWRITE64: 0, unix.SYS_COPY_FILE_RANGE: 2, unix.SYS_FSYNC: 0, unix.SYS_SYNCFS: 0, unix.SYS_CLOSE: 0,
}

// full is a volume that has no space from one of a program's calls that write until another one,
// counted from 1.
type full struct {
	volume      string
	from, until int
	errno       syscall.Errno
	// calls is how many there were, and failed says which of them failed first.
	calls  int
	failed string
}

// run runs a program on the volume, and returns its exit code. The kernel asks this process what
// each of the calls returns (seccomp_unotify(2)), which needs no permission, and Linux 5.19.
func (f *full) run(t *testing.T, p *program) int {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	its := os.NewFile(uintptr(pair[1]), "")
	p.ExtraFiles, p.Env = []*os.File{its}, append(p.Env, askingParent+"=yes")
	p.start(t)
	its.Close()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(pair[0], make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	messages, parsing := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || parsing != nil || len(messages) == 0 {
		t.Fatal(err, parsing, p.code(t), p.output.String())
	}
	listeners, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listeners[0])
	answered := make(chan error)
	go func() { answered <- f.answer(listeners[0], p.Process.Pid) }()
	code := p.code(t)
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	return code
}

// call is struct seccomp_notif, and answer struct seccomp_notif_resp.
type call struct {
	id        uint64
	thread    uint32
	_         uint32
	number    uint32
	_         uint32
	_         uint64
	arguments [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

func ioctl[T any](file int, request uintptr, what *T) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(file), request, uintptr(unsafe.Pointer(what)))
	if errno == 0 || errno == unix.ENOENT { // The process has ended.
		return nil
	}
	return errno
}

// answer answers the calls of a process until it ends.
func (f *full) answer(listener, process int) error {
	itself, err := unix.PidfdOpen(process, 0)
	if err != nil {
		return err
	}
	defer unix.Close(itself)
	for {
		waiting := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(waiting, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if waiting[0].Revents&unix.POLLHUP != 0 {
			return nil
		}
		if waiting[0].Revents&unix.POLLIN == 0 {
			continue
		}
		var now call
		if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_RECV, &now); err != nil {
			return err
		}
		if err := ioctl(listener, unix.SECCOMP_IOCTL_NOTIF_SEND, f.decide(&now, itself)); err != nil {
			return err
		}
	}
}

// decide returns what a call returns: an error while the volume is full, but half of what is written
// when that begins, as file systems do.
func (f *full) decide(now *call, process int) *answer {
	proceed := &answer{id: now.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	file := int32(now.arguments[writing[now.number]])
	at := fmt.Sprintf("/proc/%d/fd/%d", now.thread, file)
	if path, err := os.Readlink(at); err != nil || !strings.HasPrefix(path, f.volume) || !needsSpace(now, at) {
		return proceed
	}
	if f.calls++; f.calls < f.from || f.calls > f.until {
		return proceed
	}
	if f.failed == "" {
		f.failed = fmt.Sprintf("call %d, which has the number %d, until %d: %v", f.calls, now.number, f.until, f.errno)
	}
	if f.until > f.from && f.calls == f.from {
		if n, err := half(now, process); n > 0 && err == nil {
			return &answer{id: now.id, value: int64(n)}
		}
	}
	return &answer{id: now.id, errno: -int32(f.errno)}
}

// needsSpace is false for a call that opens what is there, or closes a directory.
func needsSpace(now *call, at string) bool {
	switch now.number {
	case unix.SYS_OPENAT:
		name := make([]byte, unix.PathMax)
		n, _ := read(now, name) // It may be less: what follows it in memory may not be readable.
		_, err := os.Lstat(at + "/" + unix.ByteSliceToString(name[:n]))
		return now.arguments[2]&unix.O_CREAT != 0 && err != nil
	case unix.SYS_CLOSE:
		info, err := os.Stat(at)
		return err == nil && info.Mode().IsRegular()
	}
	return true
}

// read reads the memory that the second argument of a call points to.
func read(now *call, into []byte) (int, error) {
	local, remote := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}, []unix.RemoteIovec{{Base: uintptr(now.arguments[1]), Len: len(into)}}
	return unix.ProcessVMReadv(int(now.thread), local, remote, 0)
}

// half writes half of what a call of write or pwrite writes.
func half(now *call, process int) (int, error) {
	if now.number != unix.SYS_WRITE && now.number != unix.SYS_PWRITE64 {
		return 0, nil
	}
	bytes := make([]byte, now.arguments[2]/2+1)
	if _, err := read(now, bytes); err != nil {
		return 0, err
	}
	file, err := unix.PidfdGetfd(process, int(now.arguments[0]), 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(file)
	if now.number == unix.SYS_WRITE {
		return unix.Write(file, bytes)
	}
	return unix.Pwrite(file, bytes, int64(now.arguments[3]))
}

// askParent makes the kernel ask the process that has started this one about its calls that write.
func askParent() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	numbers := slices.Collect(maps.Keys(writing))
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}}
	for i, number := range numbers {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(numbers) - i), K: number})
	}
	filter = append(filter, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: unix.BPF_RET, K: unix.SECCOMP_RET_USER_NOTIF})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_TSYNC | unix.SECCOMP_FILTER_FLAG_TSYNC_ESRCH | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	listener, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	const parent = 3 // The first of ExtraFiles.
	return unix.Sendmsg(parent, []byte{0}, unix.UnixRights(int(listener)), nil, 0)
}
