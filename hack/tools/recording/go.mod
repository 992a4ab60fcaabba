// Module recording has the program of "make recording". It is a separate module, so that its
// dependencies do not affect the operator's.
module github.com/modelbox-operator/modelbox-operator/hack/tools/recording

go 1.26.0

require github.com/creack/pty v1.1.24

require github.com/google/go-cmp v0.7.0
