ARG BASE
FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends mariadb-server-core mariadb-client-core \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
RUN (id mysql >/dev/null 2>&1 || useradd --system --user-group --home-dir /nonexistent --shell /bin/false mysql) \
 && mkdir -p /run/mysqld /var/lib/mysql \
 && chown mysql:mysql /run/mysqld /var/lib/mysql \
 && mariadb-install-db --user=mysql --datadir=/usr/local/share/datadir \
    --auth-root-authentication-method=normal --skip-test-db
COPY entrypoint /usr/local/bin/docker-entrypoint.sh
VOLUME /var/lib/mysql
EXPOSE 3306
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["mariadbd"]
