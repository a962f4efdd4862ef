# One static program in an image without a shell, a package manager or root.
FROM docker.io/library/rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev gcc make
WORKDIR /src
COPY . .
# musl's own allocator is slow under threads; the program brings another one.
RUN cargo build --release --locked --package turnbuckle-server \
 && install -d -o 65532 -g 65532 /out/var/lib/turnbuckle \
 && install -D target/release/turnbuckle /out/usr/bin/turnbuckle

FROM scratch
COPY --from=build /out /
# 65532 is the usual "nonroot" of minimal images.
USER 65532:65532
WORKDIR /var/lib/turnbuckle
# API (gRPC, gRPC-Web, JSON), ingress of third parties, health and metrics.
EXPOSE 7420 7421 7422
ENTRYPOINT ["/usr/bin/turnbuckle"]
CMD ["serve"]
