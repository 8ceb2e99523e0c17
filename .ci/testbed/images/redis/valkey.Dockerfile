ARG BASE
FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends valkey-server \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
COPY entrypoint /usr/local/bin/entrypoint
RUN mkdir /data && chown valkey:valkey /data
VOLUME /data
WORKDIR /data
USER valkey
EXPOSE 6379
ENTRYPOINT ["entrypoint"]
CMD ["valkey-server"]
