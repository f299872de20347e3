# Flowstone as a service. The project is the volume /srv/flowstone.
#
#   docker build -t flowstone .
#   docker run --rm -v "$PWD:/srv/flowstone" flowstone run flows/repo-report.edn --input '{"path": "."}'
#   docker run -d -p 127.0.0.1:7373:7373 -v desk:/srv/flowstone flowstone

FROM rust:1.95-slim-trixie AS build
WORKDIR /source
COPY . .
RUN apt-get update && apt-get install --yes --no-install-recommends build-essential \
    && cargo build --profile dist --locked

FROM debian:trixie-slim
# git is for flows that read repositories, the certificates for those that call servers with a private authority.
RUN apt-get update && apt-get install --yes --no-install-recommends ca-certificates git openssh-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --home-dir /srv/flowstone --create-home flowstone
COPY --from=build /source/target/dist/flowstone /usr/local/bin/flowstone
USER flowstone
WORKDIR /srv/flowstone
VOLUME /srv/flowstone
EXPOSE 7373
HEALTHCHECK --interval=30s --timeout=5s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7373 && printf 'GET /readyz HTTP/1.0\r\nHost: 127.0.0.1:7373\r\n\r\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]
ENTRYPOINT ["flowstone"]
CMD ["serve", "--listen", "0.0.0.0:7373"]
