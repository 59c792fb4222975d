package deploy

import "syscall"

// apart has a child in a group of its own, that ends with us however we end.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
