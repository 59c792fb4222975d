//go:build !linux

package deploy

import "syscall"

// apart has a child in a group of its own. Only Linux ends it with us if we are killed.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
