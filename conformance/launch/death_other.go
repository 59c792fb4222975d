//go:build !linux

package launch

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
