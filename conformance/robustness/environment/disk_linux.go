package environment

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// mount gives the member a file system of its own for its data.
func (m *Member) mount(bytes int64) error {
	m.disk = filepath.Join(m.dir, "disk")
	if err := os.Mkdir(m.disk, 0o700); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", m.disk, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
		return fmt.Errorf("mounting a file system of %d bytes failed (only root may): %w", bytes, err)
	}
	m.mounted = true
	return nil
}

func (m *Member) unmount() {
	if m.mounted {
		_ = syscall.Unmount(m.disk, syscall.MNT_DETACH)
	}
}

// FillDisk leaves no space on the member's file system.
func (m *Member) FillDisk() error {
	file, err := os.Create(filepath.Join(m.disk, "filler"))
	if err != nil {
		return err
	}
	defer file.Close()
	zeros := make([]byte, 1<<20)
	for {
		if _, err := file.Write(zeros); err != nil {
			return nil // full, as it should be
		}
	}
}

// FreeDisk undoes FillDisk.
func (m *Member) FreeDisk() error { return os.Remove(filepath.Join(m.disk, "filler")) }
