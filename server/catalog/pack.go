package catalog

import (
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packers returns the process's encoder and decoder. EncodeAll and DecodeAll
// of one are safe for concurrent use, and both hold buffers worth sharing.
var packers = sync.OnceValues(func() (*zstd.Encoder, *zstd.Decoder) {
	// Real CRDs become a seventh of their size at this level. The next
	// would save 3 % more and take four times as long.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(1<<20), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err) // the options above are constants
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic(err)
	}
	return enc, dec
})

// pack compresses data into memory of just the size that is needed.
func pack(data []byte) []byte {
	enc, _ := packers()
	loose := enc.EncodeAll(data, make([]byte, 0, len(data)/4))
	return append(make([]byte, 0, len(loose)), loose...)
}

// unpack decompresses data to a known size.
func unpack(packed []byte, size int) ([]byte, error) {
	_, dec := packers()
	data, err := dec.DecodeAll(packed, make([]byte, 0, size))
	if err != nil {
		return nil, fmt.Errorf("failed to decompress a CRD in memory: %w", err)
	}
	return data, nil
}
