//go:build !linux

package environment

import "errors"

var errNoDisk = errors.New("file systems for members are mounted on Linux only")

func (*Member) mount(int64) error { return errNoDisk }

func (*Member) unmount() {}

// FillDisk leaves no space on the member's file system.
func (*Member) FillDisk() error { return errNoDisk }

// FreeDisk undoes FillDisk.
func (*Member) FreeDisk() error { return errNoDisk }
