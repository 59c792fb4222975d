package environment

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// memberOf tells which member has opened a connection. All use the same address of a peer, so that the socket has to be
// looked for among those of the processes.
func (w *Environment) memberOf(conn net.Conn) int {
	remote, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return unknown
	}
	local, suffix := conn.LocalAddr().(*net.TCPAddr), fmt.Sprintf(":%04X", remote.Port)
	for _, m := range w.Members {
		p := m.current()
		if p == nil {
			continue
		}
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", p.Pid))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) > 9 && strings.HasSuffix(f[1], suffix) && strings.HasSuffix(f[2], fmt.Sprintf(":%04X", local.Port)) {
				if sockets, err := launch.Sockets(p.Pid); err == nil && sockets[f[9]] {
					return m.ID
				}
			}
		}
	}
	return unknown
}
