ARG BASE
FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends mysql-server-core mysql-client-core \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
# auto.cnf holds the server's identity: each copy of the data directory makes its own.
RUN (id mysql >/dev/null 2>&1 || useradd --system --user-group --home-dir /nonexistent --shell /bin/false mysql) \
 && mkdir -p /run/mysqld /var/lib/mysql /var/lib/mysql-files \
 && chown mysql:mysql /run/mysqld /var/lib/mysql /var/lib/mysql-files \
 && mysqld --initialize-insecure --user=mysql --datadir=/usr/local/share/datadir \
 && rm -f /usr/local/share/datadir/auto.cnf
COPY entrypoint /usr/local/bin/docker-entrypoint.sh
VOLUME /var/lib/mysql
EXPOSE 3306
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["mysqld"]
