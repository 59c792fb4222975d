package main

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// asUser runs a program with a root folder, and a user such as 1:1.
func asUser(t *testing.T, root, user, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	uid, gid, _ := strings.Cut(user, ":")
	u, err := strconv.ParseUint(uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	g, err := strconv.ParseUint(gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: name, Args: append([]string{name}, args...), Dir: dir, Env: env,
		SysProcAttr: &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: uint32(u), Gid: uint32(g)}}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
