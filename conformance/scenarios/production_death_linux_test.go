package scenarios

import "syscall"

// withParent asks the kernel to end a child whose parent is gone: also a test that was killed cleans up.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
