package controllers_test

import "syscall"

// dieWithParent asks the kernel to end a controller whose test is gone: also a test that was killed cleans up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
