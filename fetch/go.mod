// Module fetch has the program fetch-model, which the init container of a ModelBox with
// spec.model runs. It is a separate module, so that its dependencies affect neither the
// operator's two processes nor those who import the API.
module github.com/modelbox-operator/modelbox-operator/fetch

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.7
	github.com/gofrs/flock v0.13.1
	github.com/klauspost/compress v1.20.3
	github.com/rclone/gofakes3 v0.0.12
)

require (
	github.com/aws/smithy-go v1.28.8 // indirect
	github.com/minio/xxml v0.0.3 // indirect
	github.com/ryszard/goskiplist v0.0.0-20150312221310-2dfbae5fcf46 // indirect
	github.com/shabbyrobe/gocovmerge v0.0.0-20230507112040-c3350d9342df // indirect
	golang.org/x/sys v0.47.0 // indirect
	golang.org/x/tools v0.40.0 // indirect
)
