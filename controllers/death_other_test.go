//go:build !linux

package controllers_test

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
