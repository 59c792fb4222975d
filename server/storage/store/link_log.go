package store

import (
	"fmt"

	"google.golang.org/grpc/grpclog"
	"k8s.io/klog/v2"
)

// k8s.io/apiserver logs the warnings of gRPC, one for each attempt to connect that
// fails: each second, for as long as a member of etcd is down. links tell of that
// once, and of its end.
func init() { grpclog.SetLoggerV2(grpcLog{}) }

// grpcLog logs what gRPC says. Its warnings need a higher verbosity.
type grpcLog struct{}

const (
	grpcLogDepth   = 4
	grpcInfoLevel  = 5
	grpcAlertLevel = 4
)

func (grpcLog) at(level klog.Level, text string) {
	if v := klog.V(level); v.Enabled() {
		v.InfoSDepth(grpcLogDepth+1, text)
	}
}

// Info implements grpclog.LoggerV2.
func (l grpcLog) Info(args ...any) { l.at(grpcInfoLevel, fmt.Sprint(args...)) }

// Infoln implements grpclog.LoggerV2.
func (l grpcLog) Infoln(args ...any) { l.at(grpcInfoLevel, fmt.Sprint(args...)) }

// Infof implements grpclog.LoggerV2.
func (l grpcLog) Infof(format string, args ...any) {
	l.at(grpcInfoLevel, fmt.Sprintf(format, args...))
}

// Warning implements grpclog.LoggerV2.
func (l grpcLog) Warning(args ...any) { l.at(grpcAlertLevel, fmt.Sprint(args...)) }

// Warningln implements grpclog.LoggerV2.
func (l grpcLog) Warningln(args ...any) { l.at(grpcAlertLevel, fmt.Sprint(args...)) }

// Warningf implements grpclog.LoggerV2.
func (l grpcLog) Warningf(format string, args ...any) {
	l.at(grpcAlertLevel, fmt.Sprintf(format, args...))
}

// Error implements grpclog.LoggerV2.
func (grpcLog) Error(args ...any) { klog.ErrorDepth(grpcLogDepth, args...) }

// Errorln implements grpclog.LoggerV2.
func (grpcLog) Errorln(args ...any) { klog.ErrorDepth(grpcLogDepth, args...) }

// Errorf implements grpclog.LoggerV2.
func (grpcLog) Errorf(format string, args ...any) {
	klog.ErrorDepth(grpcLogDepth, fmt.Sprintf(format, args...))
}

// Fatal implements grpclog.LoggerV2.
func (grpcLog) Fatal(args ...any) { klog.FatalDepth(grpcLogDepth, args...) }

// Fatalln implements grpclog.LoggerV2.
func (grpcLog) Fatalln(args ...any) { klog.FatalDepth(grpcLogDepth, args...) }

// Fatalf implements grpclog.LoggerV2.
func (grpcLog) Fatalf(format string, args ...any) {
	klog.FatalDepth(grpcLogDepth, fmt.Sprintf(format, args...))
}

// V implements grpclog.LoggerV2.
func (grpcLog) V(level int) bool { return klog.V(klog.Level(level)).Enabled() }
