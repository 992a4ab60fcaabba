# The images that the operator's images are built from, for all platforms. "make base-images"
# writes the digests that their tags have now.
GOLANG_IMAGE ?= golang:1.26@sha256:0f063af2d465d8dcae54cce04278ada488b96f77b42449c8d071e47d016cc65a
BASE_IMAGE ?= gcr.io/distroless/static:nonroot@sha256:e2e927ec666bae08560abb3c55d0659eceabb657f56b6782ab500a9fc7f555e3
