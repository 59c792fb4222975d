//go:build !linux

package scenarios

import "syscall"

func withParent() *syscall.SysProcAttr { return nil }
