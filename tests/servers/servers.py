"""Real servers for tests, from Debian's packages: fetched into a cache without root, started on ports of this machine, and stopped.

A server that runs as root refuses to start (PostgreSQL), or is started as nobody, where these tests are run by root.
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

# The servers run as another user if the tests run as root, whose home others cannot enter.
HOME_CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "flowstone-ci"
SHARED_CACHE = pathlib.Path("/var/tmp/flowstone-ci") if os.geteuid() == 0 else HOME_CACHE
CACHE = pathlib.Path(os.environ.get("FLOWSTONE_SERVERS") or SHARED_CACHE / "servers")
NOBODY = 65534


class Missing(Exception):
    """A server cannot be had here; the text is the reason."""


def run(command, **more):
    """Runs a command, and returns its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, **more)
    if done.returncode != 0:
        raise Missing(f"{command[0]} fails: {done.stdout[-500:].strip()}")
    return done.stdout


def fetched(packages):
    """Unpacks packages with what they depend on, and returns the folder that stands for the root of a system."""
    root = CACHE / "root"
    mark = CACHE / ("-".join(packages) + ".done")
    if mark.exists():
        return root
    for tool in ("apt-get", "dpkg-deb"):
        if not shutil.which(tool):
            raise Missing(f"there is no {tool}")
    debs = CACHE / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    wanted = run(["apt-get", "-o", "Debug::NoLocking=1", "--print-uris", "--yes", "--no-install-recommends", "install", *packages])
    # A line is 'address' file size sum; the file is name_version_architecture.deb.
    names = [line.split()[1].split("_")[0] for line in wanted.splitlines() if line.startswith("'")]
    installed = [name for name in packages if name not in names]
    run(["apt-get", "download", *sorted(set(names) | set(installed))], cwd=debs)
    root.mkdir(exist_ok=True)
    for deb in sorted(debs.glob("*.deb")):
        run(["dpkg-deb", "--extract", str(deb), str(root)])
    mark.touch()
    return root


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def demoted():
    """Arguments of Popen that make a process of nobody out of one of root."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}


def give(folder):
    """Gives a folder to the user of the servers."""
    if os.getuid() == 0:
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)


class Server:
    """A process that listens on a port, and is stopped at the end."""

    def __init__(self, command, port, log, env=None, demote=True, seconds=30):
        self.port = port
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True, **(demoted() if demote else {}))
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise Missing(f"{command[0]} ended: {self.text()}")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.05)
        self.stop()
        raise Missing(f"{command[0]} does not listen: {self.text()}")

    def text(self):
        return pathlib.Path(self.log).read_text(errors="replace")[-800:].strip()

    def stop(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(10)


def certificate(folder):
    """Makes an authority of its own, and a certificate of it for `localhost`."""
    if not shutil.which("openssl"):
        raise Missing("there is no openssl")
    quiet = {"cwd": folder}
    run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tests", "-keyout", "ca.key", "-out", "ca.pem"], **quiet)
    run(["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"], **quiet)
    (folder / "names").write_text("subjectAltName=DNS:localhost\n")
    run(["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "server.pem"], **quiet)
    os.chmod(folder / "server.key", 0o600)


def postgres(folder, certificates, password):
    """Starts PostgreSQL with the user `admin`, and the user `reader` with the password."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    env = dict(os.environ)
    if found:
        bin_ = found[-1].parent
    else:
        root = fetched(["postgresql-15"])
        bin_ = root / "usr/lib/postgresql/15/bin"
        env["LD_LIBRARY_PATH"] = str(root / "usr/lib/x86_64-linux-gnu")
    data = folder / "postgres"
    data.mkdir()
    secret = folder / "postgres-password"
    secret.write_text(password)
    for name in ("server.key", "server.pem"):
        shutil.copy(certificates / name, folder / f"postgres-{name}")
    os.chmod(folder / "postgres-server.key", 0o600)
    give(folder)
    run([str(bin_ / "initdb"), "-D", str(data), "--username=reader", "--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync", "--encoding=UTF8", "--locale=C"], env=env, **demoted())
    port = free_port()
    settings = {"listen_addresses": "127.0.0.1", "port": port, "fsync": "off", "ssl": "on", "ssl_cert_file": folder / "postgres-server.pem", "ssl_key_file": folder / "postgres-server.key", "unix_socket_directories": ""}
    command = [str(bin_ / "postgres"), "-D", str(data)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    return Server(command, port, folder / "postgres.log", env=env)


def mariadb(folder, certificates, password):
    """Starts MariaDB with the user `reader`, its password, and the database `shop`."""
    root = fetched(["mariadb-server-core"])
    binary = shutil.which("mariadbd") or str(root / "usr/sbin/mariadbd")
    share = root / "usr/share/mysql"
    env = dict(os.environ, LD_LIBRARY_PATH=str(root / "usr/lib/x86_64-linux-gnu"))
    data = folder / "mariadb"
    data.mkdir()
    for name in ("server.key", "server.pem"):
        shutil.copy(certificates / name, folder / f"mariadb-{name}")
    give(folder)
    tables = [share / name for name in ("mariadb_system_tables.sql", "mariadb_system_tables_data.sql", "fill_help_tables.sql")]
    if not tables[0].exists():
        tables = [share / name for name in ("mysql_system_tables.sql", "mysql_system_tables_data.sql")]
    sql = "create database if not exists mysql;\nuse mysql;\n" + "\n".join(path.read_text() for path in tables[:2])
    users = ["flush privileges;", "create database shop;", f"create user reader@'%' identified by '{password}';", "grant all on *.* to reader@'%';", "delete from mysql.global_priv where User = '';"]
    start = [binary, "--no-defaults", f"--datadir={data}", f"--lc-messages-dir={share}", f"--character-sets-dir={share}/charsets", f"--tmpdir={folder}", "--innodb-flush-log-at-trx-commit=0"]
    done = subprocess.run([*start, "--bootstrap"], input=sql + "\n" + "\n".join(users) + "\n", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, env=env, **demoted())
    if done.returncode != 0:
        raise Missing(f"mariadbd --bootstrap fails: {done.stdout[-800:]}")
    port = free_port()
    command = [*start, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder}/mariadb.sock", f"--pid-file={folder}/mariadb.pid", f"--ssl-cert={folder}/mariadb-server.pem", f"--ssl-key={folder}/mariadb-server.key", "--skip-name-resolve"]
    return Server(command, port, folder / "mariadb.log", env=env)


def sshd(folder, authorized, host_key="host_key"):
    """Starts an OpenSSH server for the user of these tests, who logs in with the keys of the file."""
    installed = shutil.which("sshd") or "/usr/sbin/sshd"
    env = dict(os.environ)
    if pathlib.Path(installed).exists():
        binary = installed
    else:
        root = fetched(["openssh-server"])
        binary = str(root / "usr/sbin/sshd")
        env["LD_LIBRARY_PATH"] = ":".join(str(root / place) for place in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"))
    if not shutil.which("ssh-keygen"):
        raise Missing("there is no ssh-keygen")
    if not (folder / host_key).exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / host_key)])
    if os.getuid() == 0:
        # As root, the server separates its privileges in this empty folder.
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    port = free_port()
    settings = folder / f"sshd_config_{port}"
    settings.write_text(f"""Port {port}
ListenAddress 127.0.0.1
HostKey {folder / host_key}
AuthorizedKeysFile {authorized}
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PubkeyAuthentication yes
PermitRootLogin prohibit-password
PermitUserEnvironment no
LogLevel VERBOSE
""")
    return Server([*own_users(folder), binary, "-D", "-e", "-f", str(settings)], port, folder / f"sshd-{port}.log", env=env, demote=False)


def own_users(folder):
    """Returns what a command of root is started with, where this system lacks the user of an OpenSSH server: a list of users
    with it, which only the command sees."""
    users = pathlib.Path("/etc/passwd").read_text()
    if os.getuid() != 0 or "\nsshd:" in users:
        return []
    if not shutil.which("unshare"):
        raise Missing("there is no user sshd, and no unshare")
    path = folder / "passwd"
    path.write_text(users + f"sshd:x:{NOBODY}:{NOBODY}::/run/sshd:/usr/sbin/nologin\n")
    os.chmod(path, 0o644)
    return ["unshare", "--mount", "sh", "-c", f'mount --bind "{path}" /etc/passwd && exec "$@"', "sh"]


if __name__ == "__main__":
    sys.exit("this is a part of check.py")
