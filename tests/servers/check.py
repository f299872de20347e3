#!/usr/bin/env python3
"""`:db` against PostgreSQL and MariaDB, `:ssh` against OpenSSH, mail against an SMTP server.

    python3 tests/servers/check.py target/debug/flowstone [postgres|mariadb|mysql8|ssh|mail]...

The servers are those of Debian's packages, and aiosmtpd; where one cannot be had, its part is left out and the reason is printed.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import servers

PASSWORD = "pa55-word-of-tests"
failures = []


class Project:
    """A project whose flows run in processes of their own."""

    def __init__(self, program, folder, settings, secrets):
        self.program = program
        self.folder = folder
        folder.mkdir()
        (folder / "flowstone.edn").write_text(settings)
        (folder / ".env").write_text("".join(f"{name}={text}\n" for name, text in secrets.items()))

    def run(self, body, *options):
        """Runs a flow's body, and returns its result or its error."""
        (self.folder / "flow.edn").write_text("{:slug :flow :flow '" + body + "}" if not body.startswith("{") else body)
        done = subprocess.run([self.program, "run", "flow.edn", "--new", "--quiet", *options], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, env=dict(os.environ, NO_COLOR="1"))
        text = done.stdout.strip() if done.returncode == 0 else done.stderr.strip()
        if PASSWORD in done.stdout + done.stderr:
            failures.append(f"the secret shows in the output of {body}")
        return " ".join(text.split())

    def check(self, body, *expected):
        found = self.run(body)
        for text in expected:
            if text not in found:
                failures.append(f"{body}\n  expected {text}\n  found    {found}")
        return found

    def has_no_secret(self):
        """The password is nowhere in what the project keeps."""
        for path in (self.folder / ".flowstone").rglob("*"):
            if path.is_file() and PASSWORD.encode() in path.read_bytes():
                failures.append(f"the secret is in {path}")


def step(connection, sql, more=""):
    sql = sql.replace("\\", "\\\\").replace('"', '\\"')
    return f'(flow/step :db :it {{:connection :{connection} :sql "{sql}" {more}}})'


def write(connection, sql, more=""):
    return step(connection, sql, f":read-only false {more}")


def postgres(program, folder, certificates):
    server = servers.postgres(folder, certificates, PASSWORD)
    try:
        auth = ":auth {:type :basic :secret-ref :shop-password}"
        base = f"postgres://reader@127.0.0.1:{server.port}/postgres"
        settings = f"""{{:http {{:ca-file "{certificates}/ca.pem"}} :connections {{
          :shop {{:base-url "{base}" {auth}}}
          :wrong {{:base-url "{base}" :auth {{:type :basic :secret-ref :wrong-password}}}}
          :nobody {{:base-url "{base.replace('reader', 'nobody')}" {auth}}}
          :nothing {{:base-url "{base}"}}
          :elsewhere {{:base-url "{base}-2" {auth}}}
          :tls {{:base-url "{base.replace('127.0.0.1', 'localhost')}" :tls :verify {auth}}}
          :named {{:base-url "{base}" :tls :verify {auth}}}}}}}"""
        project = Project(program, folder / "postgres-project", settings, {"SHOP_PASSWORD": PASSWORD, "WRONG_PASSWORD": "another-word-1"})
        about_postgres(project)
        untrusting = Project(program, folder / "postgres-untrusting", settings.replace(f'{{:ca-file "{certificates}/ca.pem"}}', "{}"), {"SHOP_PASSWORD": PASSWORD})
        untrusting.check(step("tls", "select 1 as a"), "E1473")
        project.has_no_secret()
    finally:
        server.stop()


def about_postgres(project):
    check = project.check
    check(write("shop", "create type mood as enum ('good', 'bad')"), "{:affected 0, :rows []}")
    check(write("shop", """create table t (id bigint primary key, i2 smallint, i4 int, n numeric(20,4), f4 real, f8 double precision, b boolean,
      s text, v varchar(20), c char(3), d date, ts timestamp, tz timestamptz, tm time, iv interval, u uuid, j json, jb jsonb, y bytea, m mood, a int[], sa text[], ip inet)"""), ":affected 0")
    row = """:params [9223372036854775807 -1 2147483647 12345678901234.5678M 0.1 1e300 true "a'b" "x; drop table t; --" "abc" "2026-03-01" "2026-03-01T10:00:00.123456"
      #inst "2026-03-01T10:00:00.5Z" "10:00:00" "P1DT2H" #uuid "f81d4fae-7dec-11d0-a765-00a0c91e6bf6" {:a [1 nil "x"]} [1 {:b 2}] nil :good [1 nil 3] ["a" "b,\\"}"] "10.0.0.1"]"""
    check(write("shop", "insert into t values (" + ", ".join(["?"] * 23) + ")", row), "{:affected 1, :rows []}")
    check(step("shop", "select * from t"),
          ":id 9223372036854775807", ":i2 -1", ":i4 2147483647", ":n 12345678901234.5678M", ":f4 0.1", ":f8 1.0E300", ":b true", ":s \"a'b\"", ':v "x; drop table t; --"', ':c "abc"',
          ':d "2026-03-01"', ':ts "2026-03-01T10:00:00.123456"', ':tz "2026-03-01T10:00:00.5Z"', ':tm "10:00:00"', ':iv "P1DT2H"', '#uuid "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"',
          ':j {:a [1 nil "x"]}', ":jb [1 {:b 2}]", ":y nil", ':m "good"', ":a [1 nil 3]", ':sa ["a" "b,\\"}"]', ':ip "10.0.0.1"')
    check(write("shop", "update t set y = ? where id = ? returning y, id", ':params [(:y (first (flow/step :db :bytes {:connection :shop :sql "select decode(\'00ff\', \'hex\') as y"}))) 9223372036854775807]'), ':affected 1', ':y #object["[B" 2]')
    check(step("shop", "select 'NaN'::numeric as a, 'Infinity'::float8 as b, 1.50::numeric as c, 0::numeric as d, '{}'::int[] as e"), "[{:a ##NaN, :b ##Inf, :c 1.50M, :d 0M, :e []}]")
    check(step("shop", 'select jb ?? ? as has from t', ':params ["x"]'), "[{:has false}]")
    check(step("shop", "select $2::text as b, $1::int as a", ':params [1 "x"]'), '[{:b "x", :a 1}]')
    check(step("shop", "select id from t where id = any(?)", ":params [[1 9223372036854775807]]"), "[{:id 9223372036854775807}]")
    # Names and values that are SQL.
    check(write("shop", 'create table "a""; drop table t; --" (x int)'), ":affected 0")
    check(step("shop", 'select * from "a""; drop table t; --"'), "[]")
    check(step("shop", "select count(*) as n from t where s = ?", ':params ["\' or 1 = 1; --"]'), "[{:n 0}]")
    # What a statement may not do.
    for sql in ["delete from t", "with d as (delete from t returning 1) select * from d", "select set_config('transaction_read_only', 'off', true), 1",
                "explain analyze delete from t", "select nextval('s')", "create table x ()", "copy t to stdout", "do $$ begin delete from t; end $$"]:
        project.run(write("shop", "create sequence if not exists s"))
        found = project.run(step("shop", sql))
        if "E1472" not in found and "E1468" not in found:
            failures.append(f"{sql} was executed: {found}")
    check(write("shop", "create function wipe() returns int language plpgsql as $$ begin perform set_config('transaction_read_only', 'off', true); delete from t; return 1; end $$"), ":affected 0")
    found = project.run(step("shop", "select wipe()"))
    if "error" not in found:
        failures.append(f"a function writes in a statement that reads: {found}")
    check(step("shop", "select count(*) as n from t"), "[{:n 1}]")
    check(write("shop", "select 1; select 2"), "E1461")
    # Limits.
    check(step("shop", "select * from generate_series(1, 1000000)"), "E1470", "more than 5000 rows")
    check(step("shop", "select repeat('x', 100000000) as a"), "E1470")
    check(step("shop", "select repeat('x', 1000) as a from generate_series(1, 5000)", ":max-bytes 100000"), "E1470")
    check(step("shop", "select g as a from generate_series(1, 100000) g", ":max-results 100000 :persist {:type :table :table \"many\"}"), ":count 100000")
    began = time.monotonic()
    check(step("shop", "select pg_sleep(60)", ':timeout "1s"'), "E14")
    if time.monotonic() - began > 10:
        failures.append("a statement was not ended in time")
    time.sleep(1)
    check(step("shop", "select count(*) as n from pg_stat_activity where query like '%pg_sleep(60)%' and query not like '%stat%'"), "[{:n 0}]")
    check(write("shop", "delete from t returning id", ":max-results 1 :max-bytes 1"), "E1470")
    check(step("shop", "select count(*) as n from t"), "[{:n 1}]")
    # Errors.
    check(step("shop", "selec 1", ":read-only false"), "E1468", "syntax error")
    check(step("shop", "select * from nothing"), "E1468", "does not exist")
    check(f"(try {write('shop', 'insert into t (id) values (?)', ':params [9223372036854775807]')} (catch :default e (select-keys (ex-data e) [:kind :sql-state])))", ":kind :conflict", ':sql-state "23505"')
    check(step("shop", "select ?::int as a", ':params ["x"]'), "E1468", "invalid input syntax")
    check(step("shop", "select ? as a", ":params [1 2]"), "E1464")
    check(step("shop", "select 1 as a, 2 as a"), "E1471")
    check(step("wrong", "select 1"), "E1467", "password authentication failed")
    check(step("nobody", "select 1"), "E1467")
    check(step("nothing", "select 1"), "E1467", "names no secret")
    check(step("elsewhere", "select 1"), "E1467", "does not exist")
    # TLS, by name; the certificate is not one for the address.
    check(step("tls", "select ssl as a from pg_stat_ssl where pid = pg_backend_pid()"), "[{:a true}]")
    check(step("named", "select 1 as a"), "E1473")
    # Variables of templates.
    check("""{:slug :flow :templates [{:id :q :type :sql :sql "select {{a}}::int + {{b.c}}::int as n, 'it''s' as s"}]
      :flow '(flow/step :db :it {:database :postgres :connection :shop :template :q :data {:a 1 :b {:c 2}}})}""", "[{:n 3, :s \"it's\"}]")
    # Recorded, and answered without the server.
    live = project.run(step("shop", "select id, n, tz from t"), "--record", "answers")
    replay = project.run(step("shop", "select id, n, tz from t"), "--replay", "answers")
    if live != replay or ":n 12345678901234.5678M" not in live:
        failures.append(f"a recording answers otherwise: {live} {replay}")


def mariadb(program, folder, certificates):
    server = servers.mariadb(folder, certificates, PASSWORD)
    try:
        auth = ":auth {:type :basic :secret-ref :shop-password}"
        base = f"mysql://reader@127.0.0.1:{server.port}/shop"
        settings = f"""{{:http {{:ca-file "{certificates}/ca.pem"}} :connections {{
          :shop {{:base-url "{base}" {auth}}}
          :wrong {{:base-url "{base}" :auth {{:type :basic :secret-ref :wrong-password}}}}
          :nothing {{:base-url "{base}"}}
          :elsewhere {{:base-url "{base}-2" {auth}}}
          :tls {{:base-url "{base.replace('127.0.0.1', 'localhost')}" :tls :verify {auth}}}
          :named {{:base-url "{base}" :tls :verify {auth}}}}}}}"""
        project = Project(program, folder / "mariadb-project", settings, {"SHOP_PASSWORD": PASSWORD, "WRONG_PASSWORD": "another-word-1"})
        about_mariadb(project)
        untrusting = Project(program, folder / "mariadb-untrusting", settings.replace(f'{{:ca-file "{certificates}/ca.pem"}}', "{}"), {"SHOP_PASSWORD": PASSWORD})
        untrusting.check(step("tls", "select 1 as a"), "E1473")
        project.has_no_secret()
    finally:
        server.stop()


def about_mariadb(project):
    check = project.check
    check(write("shop", """create table t (id bigint unsigned primary key, i1 tinyint, i2 smallint unsigned, i3 mediumint, n decimal(20,4), f4 float, f8 double, b boolean,
      s varchar(40) character set utf8mb4, c char(3), x text, d date, dt datetime(6), ts timestamp(3) null, tm time(3), yr year, bt bit(9), e enum('good','bad'), st set('p','q'), y blob, j json)"""), ":affected 0")
    row = """:params [18446744073709551615 -1 65535 -8388608 12345678901234.5678M 0.1 1e300 true "aä'b😀" "abc" "x; drop table t; --" "2026-03-01" "2026-03-01T10:00:00.123456"
      #inst "2026-03-01T10:00:00.5Z" "-30:00:00.5" 2026 257 :good "p,q" nil {:a [1 nil "x"]}]"""
    check(write("shop", "insert into t values (" + ", ".join(["?"] * 21) + ")", row), ":affected 1")
    check(step("shop", "select * from t"),
          ":id 18446744073709551615N", ":i1 -1", ":i2 65535", ":i3 -8388608", ":n 12345678901234.5678M", ":f4 0.1", ":f8 1.0E300", ":b 1", ":s \"aä'b😀\"", ':c "abc"', ':x "x; drop table t; --"',
          ':d "2026-03-01"', ':dt "2026-03-01T10:00:00.123456"', ':ts "2026-03-01T10:00:00.5"', ':tm "-30:00:00.5"', ":yr 2026", ":bt 257", ':e "good"', ':st "p,q"', ":y nil", ':j "{')
    check(step("shop", "select id from t where n = ? and dt = ? and ts = ?", ':params [12345678901234.5678M "2026-03-01T10:00:00.123456" #inst "2026-03-01T10:00:00.5Z"]'), ":id 18446744073709551615N")
    check(write("shop", "update t set y = ? where id = ?", ':params [(:y (first (flow/step :db :bytes {:connection :shop :sql "select x\'00ff\' as y"}))) 18446744073709551615N]'), ":affected 1")
    check(step("shop", "select y, cast('2026-03-01' as datetime) as d, time '10:00:00' as t from t"), ':y #object["[B" 2]', ':d "2026-03-01T00:00:00"', ':t "10:00:00"')
    check(step("shop", "select null as a, 1.50 as b, 1e0 as c, true as d, 'x' as e"), '[{:a nil, :b 1.50M, :c 1.0, :d 1, :e "x"}]')
    check(write("shop", "create table s (id int auto_increment primary key, a text)"), ":affected 0")
    check(write("shop", "insert into s (a) values (?), (?)", ':params ["x" "y"]'), ":affected 2", ":last-id 1")
    # Names and values that are SQL.
    check(write("shop", "create table `a``; drop table t; --` (x int)"), ":affected 0")
    check(step("shop", "select * from `a``; drop table t; --`"), "[]")
    check(step("shop", "select count(*) as n from t where s = ?", ':params ["\' or 1 = 1; -- "]'), "[{:n 0}]")
    check(step("shop", "select '?' as a, \"?\" as b, ? as c # ?", ":params [1]"), ':a "?", :b "?", :c 1')
    # What a statement may not do.
    check(write("shop", "create procedure wipe() begin commit; set session transaction read write; delete from t; end"), ":affected 0")
    check(write("shop", "create function wiped() returns int modifies sql data begin delete from t; return 1; end"), ":affected 0")
    for sql in ["delete from t", "with d as (select 1) delete from t", "call wipe()", "select wiped()", "create table x (a int)", "drop table t", "select 1 into outfile '/tmp/x'", "select 1 /*! into outfile '/tmp/x' */",
                "set session transaction read write", "commit", "begin not atomic delete from t; end", "execute immediate 'delete from t'", "load data local infile '/etc/passwd' into table s", "prepare a from 'delete from t'"]:
        found = project.run(step("shop", sql))
        if not any(code in found for code in ("E1461", "E1468", "E1472")):
            failures.append(f"{sql} was executed: {found}")
    check(step("shop", "select count(*) as n from t"), "[{:n 1}]")
    check(write("shop", "load data local infile '/etc/passwd' into table s"), "error")
    check(write("shop", "select 1; select 2"), "E1461")
    # Limits.
    check(step("shop", "select seq from seq_1_to_1000000"), "E1470", "more than 5000 rows")
    check(step("shop", "select repeat('x', 15000000) as a, repeat('x', 15000000) as b, repeat('x', 15000000) as c"), "E1470")
    check(step("shop", "select repeat('x', 1000) as a from seq_1_to_5000", ":max-bytes 100000"), "E1470")
    check(step("shop", "select repeat('x', 15000000) as a, repeat('y', 5000000) as b", ":max-bytes 50000000 :persist {:type :blob}"), "res://")
    began = time.monotonic()
    check(step("shop", "select sleep(60)", ':timeout "1s"'), "E14")
    check(step("shop", "select count(*) as n from seq_1_to_100000000 a, seq_1_to_100000000 b", ':timeout "1s"'), "E14")
    if time.monotonic() - began > 15:
        failures.append("a statement was not ended in time")
    check(write("shop", "delete from t returning id", ":max-bytes 1"), "E1470")
    check(step("shop", "select count(*) as n from t"), "[{:n 1}]")
    # Errors.
    check(write("shop", "selec 1"), "E1468", "syntax")
    check(step("shop", "select * from nothing"), "E1468", "doesn't exist")
    check(f"(try {write('shop', 'insert into t (id) values (?)', ':params [18446744073709551615N]')} (catch :default e (select-keys (ex-data e) [:kind :number])))", ":kind :conflict", ":number 1062")
    check(step("shop", "select ? as a", ":params [1 2]"), "E1464")
    check(step("shop", "select * from t where id in (?)", ":params [[1 2]]"), "E1464")
    check(step("shop", "select 1 as a, 2 as a"), "E1471")
    check(step("wrong", "select 1"), "E1467", "Access denied")
    check(step("nothing", "select 1"), "E1467")
    check(step("elsewhere", "select 1"), "E1467", "Unknown database")
    check(step("tls", "show status like 'Ssl_version'"), "TLS")
    check(step("named", "select 1 as a"), "E1473")


class Caching:
    """Plays the login of MySQL 8, which asks for the password by TLS, and one statement."""

    def __init__(self, certificates):
        import socket
        import ssl
        import threading

        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                self.talk(client)
            except (OSError, IndexError) as error:
                self.seen.append(error)

    def talk(self, client):
        import hashlib

        client.settimeout(10)

        def send(number, body):
            client.sendall(len(body).to_bytes(3, "little") + bytes([number]) + body)

        def exactly(count):
            data = b""
            while len(data) < count:
                more = client.recv(count - len(data))
                if not more:
                    raise OSError("closed")
                data += more
            return data

        def packet():
            head = exactly(4)
            return exactly(int.from_bytes(head[:3], "little"))

        salt = b"0123456789abcdefghij"
        send(0, b"\x0a8.4.0\0" + b"\1\0\0\0" + salt[:8] + b"\0" + b"\x08\xaa" + b"\x2d\x02\x00" + b"\x28\x00" + b"\x15" + bytes(10) + salt[8:] + b"\0" + b"caching_sha2_password\0")
        packet()
        client = self.context.wrap_socket(client, server_side=True)
        answer = packet()
        once = hashlib.sha256(PASSWORD.encode()).digest()
        mixed = hashlib.sha256(hashlib.sha256(once).digest() + salt).digest()
        proof = bytes(left ^ right for left, right in zip(once, mixed))
        self.seen.append(("proof", proof in answer))
        send(3, b"\x01\x04")
        self.seen.append(("password", packet() == PASSWORD.encode() + b"\0"))
        send(5, b"\0\0\0\2\0\0\0")
        while True:
            command = packet()
            if command[0] == 0x16:
                break
            send(1, b"\0\0\0\2\0\0\0")
        column = b"\x03def\0\0\0\x01a\0\x0c\x2d\0\0\0\0\0\xfd\0\0\0\0\0"
        send(1, b"\0\1\0\0\0\1\0\0\0\0\0\0")
        send(2, column)
        send(3, b"\xfe\0\0\2\0")
        packet()
        for number, body in enumerate((b"\1", column, b"\xfe\0\0\2\0", b"\0\0\1x", b"\xfe\0\0\2\0"), 1):
            send(number, body)
        client.close()


def mysql8(program, folder, certificates):
    server = Caching(certificates)
    auth = ":auth {:type :basic :secret-ref :shop-password}"
    settings = f"""{{:http {{:ca-file "{certificates}/ca.pem"}} :connections {{
      :shop {{:base-url "mysql://reader@127.0.0.1:{server.port}/shop" {auth}}}
      :tls {{:base-url "mysql://reader@localhost:{server.port}/shop" :tls :verify {auth}}}
      :named {{:base-url "mysql://reader@127.0.0.1:{server.port}/shop" :tls :verify {auth}}}
      :off {{:base-url "mysql://reader@127.0.0.1:{server.port}/shop" :tls :off {auth}}}}}}}"""
    project = Project(program, folder / "project", settings, {"SHOP_PASSWORD": PASSWORD})
    for connection in ("shop", "tls"):
        server.seen.clear()
        project.check(step(connection, "select a from t"), '[{:a "x"}]')
        if server.seen != [("proof", True), ("password", True)]:
            failures.append(f"the login of MySQL 8 is wrong: {server.seen}")
    project.check(step("named", "select a from t"), "E1473")
    project.has_no_secret()
    server.listener.close()


def ssh(program, folder, certificates):
    os.chmod(folder, 0o700)
    key, locked = folder / "key", folder / "locked"
    for path, phrase in ((key, ""), (locked, PASSWORD), (folder / "stranger", "")):
        try:
            servers.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", str(path)])
        except FileNotFoundError:
            raise servers.Missing("there is no ssh-keygen")
    authorized = folder / "authorized"
    authorized.write_text("".join(path.with_suffix(".pub").read_text() for path in (key, locked)))
    server = servers.sshd(folder, authorized)
    try:
        about_ssh(program, folder, server)
    finally:
        server.stop()


def about_ssh(program, folder, server):
    import getpass

    base = f"ssh://{getpass.getuser()}@127.0.0.1:{server.port}"
    host = f"[127.0.0.1]:{server.port}"
    known = f"{host} {(folder / 'host_key.pub').read_text()}"
    servers.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "other_key")])
    changed = f"{host} {(folder / 'other_key.pub').read_text()}"
    auth = ":auth {:type :private-key :secret-ref :deploy-key}"
    hosts = ':known-hosts "known_hosts"'
    settings = f"""{{:secrets {{:deploy-key {{:file "../key"}} :locked-key {{:file "../locked"}} :stranger-key {{:file "../stranger"}} :known {{:file "known_hosts"}}}}
      :connections {{
        :web {{:base-url "{base}" {hosts} {auth}}}
        :secret {{:base-url "{base}" :known-hosts {{:secret-ref :known}} {auth}}}
        :changed {{:base-url "{base}" :known-hosts "changed_hosts" {auth}}}
        :unknown {{:base-url "{base}" :known-hosts "no_hosts" {auth}}}
        :stranger {{:base-url "{base}" {hosts} :auth {{:type :private-key :secret-ref :stranger-key}}}}
        :locked {{:base-url "{base}" {hosts} :auth {{:type :private-key :secret-ref :locked-key :passphrase-secret-ref :passphrase}}}}
        :wrong {{:base-url "{base}" {hosts} :auth {{:type :private-key :secret-ref :locked-key :passphrase-secret-ref :wrong-phrase}}}}
        :closed {{:base-url "ssh://ada@127.0.0.1:1" {hosts} {auth}}}}}}}"""
    project = Project(program, folder / "project", settings, {"PASSPHRASE": PASSWORD, "WRONG_PHRASE": "another-word-1"})
    (project.folder / "known_hosts").write_text(known)
    (project.folder / "changed_hosts").write_text(changed)
    (project.folder / "no_hosts").write_text("")

    def step(connection, command, more=""):
        command = command.replace("\\", "\\\\").replace('"', '\\"')
        return f'(flow/step :ssh :it {{:connection :{connection} :command "{command}" {more}}})'

    def keys(body):
        return f"(select-keys {body} [:success :exit :stdout :stderr])"

    check = project.check
    check(keys(step("web", "printf out; printf err >&2")), '{:success true, :exit 0, :stdout "out", :stderr "err"}')
    check(keys(step("secret", "echo hi")), ':stdout "hi\\n"')
    check(keys(step("locked", "echo hi")), ':stdout "hi\\n"')
    check(keys(step("web", "pwd; printf '%s|' \"$A\" \"$B_2\"", ':workdir "/tmp" :env {:A "it\'s; echo $HOME `id` \\"q\\"" :B_2 7}')), "/tmp", "it's; echo $HOME `id` \\\"q\\\"|7|")
    check(keys(step("web", "cat", ':stdin "a\\nb"')), ':stdout "a\\nb"')
    check(keys(step("web", "cat")), ':stdout ""')
    check(keys(step("web", "test -t 0 && echo terminal", ":pty? true")), "terminal")
    # Exit codes are data, also that of `ssh` itself.
    check(step("web", "echo no >&2; exit 3"), "E1479", "ended with 3: no")
    check(keys(step("web", "exit 3", ":ok-exit-codes [0 3]")), ":exit 3")
    check(keys(step("web", "exit 255", ":ok-exit-codes :any")), ":exit 255")
    check(f"(try {step('web', 'echo out; exit 4')} (catch :default e (select-keys (ex-data e) [:kind :exit :stdout])))", "{:kind :exit", ":exit 4", ':stdout "out\\n"')
    check(step("web", "cd", ':workdir "/no/such/folder"'), "E1479", "127")
    # Keys of machines and users.
    check(step("changed", "echo hi"), "E1476", "is not the one that is known")
    check(step("unknown", "echo hi"), "E1476", "is not known")
    check(step("stranger", "echo hi"), "E1477", "Permission denied")
    check(step("wrong", "echo hi"), "E1477")
    check(step("closed", "echo hi"), "E1477", "Connection refused")
    # Limits.
    check(step("web", "yes"), "E1480")
    check(keys(step("web", "head -c 100000 /dev/zero | tr '\\0' x", ":max-output-bytes 100000")), ":exit 0")
    began = time.monotonic()
    check(step("web", "sleep 300", ':timeout "1s"'), "E1478")
    if time.monotonic() - began > 10:
        failures.append("a command was not ended in time")
    left = subprocess.run(["pgrep", "-f", f"HostKeyAlias=\\[127.0.0.1\\]:{server.port}"], stdout=subprocess.PIPE, text=True).stdout
    if left.strip():
        failures.append(f"a process of ssh is left: {left}")
    if list(pathlib.Path(tempfile.gettempdir()).glob("flowstone-ssh-*")):
        failures.append("a folder of ssh is left")
    # Recorded, and answered without the machine.
    live = project.run(keys(step("web", "date +%N")), "--record", "answers")
    replay = project.run(keys(step("web", "date +%N")), "--replay", "answers")
    if live != replay or ":exit 0" not in live:
        failures.append(f"a recording answers otherwise: {live} {replay}")
    # A flow that only has its own address may not start the program.
    (project.folder / "flowstone.edn").write_text("{}")
    check('{:slug :flow :requires [{:slot :own :type :ssh :base-url "' + base + '"}] :flow \'(flow/step :ssh :it {:connection :own :command "id"})}', "E0960")
    project.has_no_secret()
    secret = "".join(key_line for key_line in (folder / "key").read_text().splitlines()[1:2])
    for path in (project.folder / ".flowstone").rglob("*"):
        if path.is_file() and secret.encode() in path.read_bytes():
            failures.append(f"the key is in {path}")


class Mails:
    """An SMTP server that keeps what it gets."""

    def __init__(self, certificates, tls, implicit=False):
        import logging
        import ssl
        import warnings

        # A refused certificate is what a test wants, not news.
        logging.disable(logging.CRITICAL)
        warnings.simplefilter("ignore")
        from aiosmtpd.controller import Controller
        from aiosmtpd.smtp import AuthResult

        self.mails = []
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        mails = self.mails

        class Handler:
            async def handle_RCPT(self, server, session, envelope, address, options):
                if address.startswith("nobody"):
                    return "550 no such user"
                if address.startswith("later"):
                    return "451 try again later"
                envelope.rcpt_tos.append(address)
                return "250 OK"

            async def handle_DATA(self, server, session, envelope):
                mails.append((envelope.mail_from, list(envelope.rcpt_tos), envelope.content.decode()))
                return "250 taken"

        def log_in(server, session, envelope, mechanism, data):
            is_known = data.login == b"flows" and data.password == PASSWORD.encode()
            return AuthResult(success=is_known, handled=False)

        more = {"authenticator": log_in, "auth_required": tls, "auth_require_tls": tls and not implicit}
        if tls and not implicit:
            more["tls_context"] = context
        self.controller = Controller(Handler(), hostname="127.0.0.1", port=servers.free_port(), ssl_context=context if implicit else None, **more)
        self.controller.start()
        self.port = self.controller.port

    def stop(self):
        self.controller.stop()


def mail(program, folder, certificates):
    try:
        import aiosmtpd  # noqa: F401
    except ImportError:
        raise servers.Missing("aiosmtpd is not installed")
    plain, starttls, implicit = Mails(certificates, False), Mails(certificates, True), Mails(certificates, True, implicit=True)
    try:
        about_mail(program, folder, certificates, plain, starttls, implicit)
    finally:
        for server in (plain, starttls, implicit):
            server.stop()


def about_mail(program, folder, certificates, plain, starttls, implicit):
    auth = ":auth {:type :basic :username \"flows\" :secret-ref :mail-password}"
    settings = f"""{{:http {{:ca-file "{certificates}/ca.pem"}} :connections {{
      :plain {{:base-url "smtp://127.0.0.1:{plain.port}"}}
      :forced {{:base-url "smtp://127.0.0.1:{plain.port}" :tls :verify}}
      :mail {{:base-url "smtp://localhost:{starttls.port}" :tls :verify {auth}}}
      :named {{:base-url "smtp://127.0.0.1:{starttls.port}" :tls :verify {auth}}}
      :wrong {{:base-url "smtp://localhost:{starttls.port}" :tls :verify :auth {{:type :basic :username "flows" :secret-ref :wrong-password}}}}
      :smtps {{:base-url "smtps://localhost:{implicit.port}" {auth}}}}}}}"""
    project = Project(program, folder / "project", settings, {"MAIL_PASSWORD": PASSWORD, "WRONG_PASSWORD": "another-word-1"})
    check = project.check

    def tell(connection, more, outer=""):
        return f'(flow/step :notify :tell {{:channels {{:email {{:connection :{connection} :from "Flows <flows@example.com>" {more}}}}} {outer}}})'

    check(tell("plain", ':to ["Ada <ada@example.com>" "bo@example.com"] :cc "cy@example.com" :bcc "di@example.com" :reply-to "help@example.com" :subject "Zahlung {{n}}: größer" :text "Hällo {{n}}\\n.\\n.end"', ":data {:n 7}"),
          "{:sent? true", ":status 250", ":recipients 4", ':message-id "<')
    import email
    import email.header
    import email.policy

    sender, to, text = plain.mails[-1]
    if sender != "flows@example.com" or sorted(to) != ["ada@example.com", "bo@example.com", "cy@example.com", "di@example.com"]:
        failures.append(f"the envelope is wrong: {sender} {to}")
    got = email.message_from_string(text, policy=email.policy.default)
    expected = {"Subject": "Zahlung 7: größer", "From": "Flows <flows@example.com>", "To": "Ada <ada@example.com>, bo@example.com", "Cc": "cy@example.com", "Reply-To": "help@example.com"}
    for name, value in expected.items():
        if got[name] != value:
            failures.append(f"{name} is {got[name]!r}, not {value!r}")
    if "di@example.com" in text or "Message-ID" not in text or "Date" not in text:
        failures.append(f"the headers are wrong: {text}")
    if got.get_content().replace("\r\n", "\n").rstrip("\n") != "Hällo 7\n.\n.end":
        failures.append(f"the body is {got.get_content()!r}")
    check(tell("plain", ':to "ada@example.com" :subject "Both" :text "plain" :html "<b>rich</b>"'), ":sent? true")
    got = email.message_from_string(plain.mails[-1][2], policy=email.policy.default)
    if [part.get_content_type() for part in got.iter_parts()] != ["text/plain", "text/html"]:
        failures.append("a message of text and HTML does not have both")
    # Headers and recipients of others.
    count = len(plain.mails)
    for more in (':to "ada@example.com" :subject "{{x}}" :text "a"', ':to "{{x}}" :subject "a" :text "a"', ':to ["{{y}}"] :subject "a" :text "a"', ':to "ada@example.com" :reply-to "{{x}}" :subject "a" :text "a"'):
        check(tell("plain", more, ':data {:x "a\\r\\nBcc: eve@example.com" :y "a@example.com, eve@example.com"}'), "E1482")
    if len(plain.mails) != count:
        failures.append("a message with a header of others was sent")
    # One refused recipient: nobody gets the message.
    check(tell("plain", ':to ["ada@example.com" "nobody@example.com"] :subject "a" :text "a"'), ":sent? false", ":status 550", "no such user")
    check(tell("plain", ':to "nobody@example.com" :subject "a" :text "a"', ":on-error :fail"), "E1483")
    later = tell("plain", ':to "later@example.com" :subject "a" :text "a"', ":on-error :fail")
    check(f"(try {later} (catch :default e (:kind (ex-data e))))", ":unavailable")
    if len(plain.mails) != count:
        failures.append("a message was sent to some of its recipients")
    check(tell("forced", ':to "ada@example.com" :subject "a" :text "a"', ":on-error :fail"), "E1484", "offers no TLS")
    for connection, server in (("mail", starttls), ("smtps", implicit)):
        check(tell(connection, ':to "ada@example.com" :subject "Safe" :text "a"', ":on-error :fail"), ":sent? true")
        if len(server.mails) != 1:
            failures.append(f"no message came by :{connection}")
    check(tell("named", ':to "ada@example.com" :subject "a" :text "a"', ":on-error :fail"), "E1484", "certificate")
    check(tell("wrong", ':to "ada@example.com" :subject "a" :text "a"', ":on-error :fail"), "E1483", "the login")
    # A wait tells by mail how it is answered.
    project.run('(flow/step :wait :ok {:key "k" :approval {} :timeout "1h" :notify {:channels {:email {:connection :plain :from "flows@example.com" :to "ada@example.com" :subject "Pay?" :text "{{approval-url}}"}}}})')
    if "waits approve" not in plain.mails[-1][2].replace("=\r\n", ""):
        failures.append(f"the mail of a wait has no link: {plain.mails[-1][2]}")
    live = project.run(tell("plain", ':to "ada@example.com" :subject "a" :text "a"'), "--record", "answers")
    count = len(plain.mails)
    replay = project.run(tell("plain", ':to "ada@example.com" :subject "a" :text "a"'), "--replay", "answers")
    if ":sent? true" not in replay or len(plain.mails) != count:
        failures.append(f"a recorded message was sent again: {live} {replay}")
    project.has_no_secret()


def main():
    program = os.path.abspath(sys.argv[1])
    parts = {"postgres": postgres, "mariadb": mariadb, "mysql8": mysql8, "ssh": ssh, "mail": mail}
    wanted = sys.argv[2:] or list(parts)
    with tempfile.TemporaryDirectory(prefix="flowstone-servers-") as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o755)
        certificates = folder / "certificates"
        certificates.mkdir()
        try:
            servers.certificate(certificates)
        except servers.Missing as missing:
            print(f"left out: {missing}")
            return 0
        for part in wanted:
            own = folder / part
            own.mkdir()
            began = time.monotonic()
            try:
                parts[part](program, own, certificates)
                print(f"{part}: {time.monotonic() - began:.0f} s")
            except servers.Missing as missing:
                print(f"left out, {part}: {missing}")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
