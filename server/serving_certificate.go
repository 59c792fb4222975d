package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/klog/v2"
)

// certificateCheck is how often the server reads the files of the serving certificate. It
// reports a key that does not fit when it finds it twice: the files may be half written
// at first.
const certificateCheck = 10 * time.Second

// servingCertificate keeps the former certificate if the files come to hold one that
// clients refuse: expired, not valid yet, without names, or for another use. The
// library takes any certificate that fits its key.
type servingCertificate struct {
	*dynamiccertificates.DynamicCertKeyPairContent
	files certificate

	mu        sync.Mutex
	cert, key []byte // what is served
	seen      []byte // the last certificate that was looked at
	refused   atomic.Bool
}

// newServingCertificate takes the certificate that the server starts with as it is:
// Validate has looked at it.
func newServingCertificate(of *dynamiccertificates.DynamicCertKeyPairContent, files certificate) *servingCertificate {
	s := &servingCertificate{DynamicCertKeyPairContent: of, files: files}
	s.cert, s.key = of.CurrentCertKeyContent()
	s.seen = s.cert
	return s
}

// CurrentCertKeyContent implements dynamiccertificates.CertKeyContentProvider.
func (s *servingCertificate) CurrentCertKeyContent() (cert, key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cert, key = s.DynamicCertKeyPairContent.CurrentCertKeyContent()
	if bytes.Equal(cert, s.cert) {
		s.key = key
		return cert, key
	}
	if err := s.wrong(cert, key); err != nil {
		if !bytes.Equal(cert, s.seen) {
			s.complain(err)
		}
		s.seen = cert
		return s.cert, s.key
	}
	s.cert, s.key, s.seen = cert, key, cert
	s.refused.Store(false)
	klog.InfoS("Serving certificate was reloaded", "file", s.files.path)
	return cert, key
}

// wrong says why clients would refuse a certificate.
func (s *servingCertificate) wrong(cert, key []byte) error {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return err
	}
	var errs []error
	for _, text := range s.files.validateLeaf(pair.Leaf) {
		errs = append(errs, errors.New(text))
	}
	return errors.Join(errs...)
}

func (s *servingCertificate) complain(err error) {
	s.refused.Store(true)
	klog.ErrorS(err, "Serving certificate was not reloaded, the former one is kept; put a valid certificate and its key there", "certificate", s.files.path, "key", s.files.keyPath)
}

// Run implements dynamiccertificates.ControllerRunner.
func (s *servingCertificate) Run(ctx context.Context, workers int) {
	last := ""
	go wait.UntilWithContext(ctx, func(context.Context) {
		_, err := tls.LoadX509KeyPair(s.files.path, s.files.keyPath)
		text := ""
		if err != nil {
			text = err.Error()
		}
		switch {
		case err != nil && text == last && !s.refused.Load():
			s.complain(err) // it has been so for a while
		case err == nil:
			// A certificate that was put right without a change of its content is not
			// announced by the library.
			s.CurrentCertKeyContent()
			s.recheck()
		}
		last = text
	}, certificateCheck)
	s.DynamicCertKeyPairContent.Run(ctx, workers)
}

// recheck notes that the files hold the certificate that is served.
func (s *servingCertificate) recheck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now, _ := s.DynamicCertKeyPairContent.CurrentCertKeyContent(); bytes.Equal(now, s.cert) {
		s.refused.Store(false)
	}
}
