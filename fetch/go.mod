// Module fetch has the program fetch-model, which the init container of a ModelBox with
// spec.model runs. It is a separate module, so that its dependencies affect neither the
// operator's two processes nor those who import the API. Of the operator's module it has packages without dependencies
// alone: what admission and the fetch decide by one function.
module github.com/modelbox-operator/modelbox-operator/fetch

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.8
	github.com/aws/aws-sdk-go-v2/credentials v1.20.16
	github.com/aws/aws-sdk-go-v2/service/s3 v1.114.9
	github.com/aws/aws-sdk-go-v2/service/sts v1.51.9
	github.com/klauspost/compress v1.20.3
	github.com/rclone/gofakes3 v0.0.12
	golang.org/x/net v0.59.0
	golang.org/x/sys v0.48.0
)

require (
	github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream v1.7.26 // indirect
	github.com/aws/aws-sdk-go-v2/internal/configsources v1.5.11 // indirect
	github.com/aws/aws-sdk-go-v2/internal/endpoints/v2 v2.8.11 // indirect
	github.com/aws/aws-sdk-go-v2/internal/v4a v1.5.11 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/accept-encoding v1.13.24 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/checksum v1.11.12 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/presigned-url v1.14.11 // indirect
	github.com/aws/aws-sdk-go-v2/service/internal/s3shared v1.20.11 // indirect
	golang.org/x/text v0.42.0 // indirect
)

require (
	github.com/aws/smithy-go v1.28.8
	github.com/minio/xxml v0.0.3 // indirect
	github.com/modelbox-operator/modelbox-operator v0.0.0
	github.com/ryszard/goskiplist v0.0.0-20150312221310-2dfbae5fcf46 // indirect
	github.com/shabbyrobe/gocovmerge v0.0.0-20230507112040-c3350d9342df // indirect
	golang.org/x/tools v0.51.0 // indirect
)

replace github.com/modelbox-operator/modelbox-operator => ../
