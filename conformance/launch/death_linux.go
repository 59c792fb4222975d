package launch

import "syscall"

// dieWithParent asks the kernel to end a child whose parent is gone: also a parent that was killed cleans up.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
