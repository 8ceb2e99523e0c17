# The shop, and the teaching shop as /lab. Each is one static binary in an empty image, without a shell and without root. It
# writes only to /tmp, which the run has to mount:
#   docker run --read-only --tmpfs /tmp -p 8080:8080 shop
# Two ways to build it:
#   docker build -t shop .                     in the image golang:1.26
#   docker build -t shop --target prebuilt .   from the binaries in .build, where no registry can be reached:
#                                              CGO_ENABLED=0 go build -tags nomsgpack -o .build/ ./cmd/shop ./cmd/lab
# The tag leaves out gin's MessagePack, which the shop does not use: it is a seventh of the binary and an eighth of the build.
# The CAs of the system (for a rediss:// URL, ?tls=true in the DSN, traces to an https:// endpoint) come from the image of Go.
# prebuilt has no CAs: name the CA of each server, or mount the CAs of this machine:
#   docker run -v /etc/ssl/certs/ca-certificates.crt:/etc/ssl/certs/ca-certificates.crt:ro ...
ARG BUILD_IMAGE=golang:1.26

FROM ${BUILD_IMAGE} AS build
WORKDIR /src
# The modules are a layer of their own: they change less often than the code.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -tags nomsgpack -ldflags='-s -w' -o /bin/ ./cmd/shop ./cmd/lab

FROM scratch AS runtime
USER 65532:65532
ENV SHOP_LISTEN=:8080
EXPOSE 8080
ENTRYPOINT ["/shop"]
CMD ["serve"]

FROM runtime AS prebuilt
COPY .build/shop .build/lab /

FROM runtime AS shop
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /bin/shop /bin/lab /
