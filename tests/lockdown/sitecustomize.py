"""Put before everything else by PYTHONPATH: the process may write below one folder, speak to this machine, run nothing.

What else it tries is refused as a read-only file system and a closed network do, and written down. It stands in for a
container's restrictions where a test may not make one; files that native code opens by itself are not seen.
"""

import ipaddress
import os
import sys
from pathlib import Path

MAY_WRITE = os.path.realpath(os.environ["LOCKDOWN_FOLDER"])
ATTEMPTS = os.open(Path(MAY_WRITE, "attempts"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
#: Event -> which of its arguments are paths that change.
CHANGES = {
    "os.mkdir": (0,),
    "os.rmdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.link": (1,),
    "os.symlink": (1,),
    "os.truncate": (0,),
    "os.chmod": (0,),
    "os.utime": (0,),
    "sqlite3.connect": (0,),
}


#: Starts of other programs; workers of our own are started by other means.
PROGRAMS = {"subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"}


def is_outside(path: object) -> bool:
    if not isinstance(path, str | bytes | os.PathLike):
        return False  # an open file
    text = os.path.realpath(os.fsdecode(path).removeprefix("file:").partition("?")[0])
    return text != MAY_WRITE and not text.startswith((MAY_WRITE + "/", "/dev/", "/proc/self/"))


def is_here(host: object) -> bool:
    try:
        return host in {"localhost", "", None} or ipaddress.ip_address(str(host)).is_loopback
    except ValueError:
        return False


def refuse(error: int, *what: object) -> None:
    os.write(ATTEMPTS, " ".join(map(str, what)).encode("utf-8", "replace") + b"\n")
    raise OSError(error, os.strerror(error), str(what[-1]))


def watch(event: str, arguments: tuple[object, ...]) -> None:
    if event == "open":
        path, _, flags = arguments
        if isinstance(flags, int) and flags & WRITES and is_outside(path):
            refuse(30, "write", path)  # EROFS
    elif event in CHANGES:
        for place in CHANGES[event]:
            if is_outside(arguments[place]):
                refuse(30, event, arguments[place])
    elif event in PROGRAMS:
        refuse(1, event, arguments[0] if arguments else "")  # EPERM
    elif event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and not is_here(address[0]):
            refuse(101, "connect", address[0])  # ENETUNREACH
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"} and not is_here(arguments[0]):
        refuse(101, "look up", arguments[0])


sys.addaudithook(watch)
