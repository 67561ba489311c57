"""A ProxyCommand of ssh that kills the server's process once enough bytes went by.

Called as: cutting.py HOST PORT BYTES PIDFILE DONE. Only the first connection that
carries so many bytes is cut; the file DONE says that it was.
"""

import os
import signal
import socket
import sys
import threading
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the processes that a server has for its connections."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(one) for one in listed.split()]


def kill_sessions(pid_file: Path) -> None:
    for child in children_of(int(pid_file.read_text())):
        os.kill(child, signal.SIGKILL)


def main() -> None:
    host, port, limit, pid_file, done = sys.argv[1:]
    link = socket.create_connection((host, int(port)))

    def back() -> None:
        while data := link.recv(1 << 16):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        os._exit(0)

    threading.Thread(target=back, daemon=True).start()
    sent = 0
    while data := os.read(0, 1 << 14):
        sent += len(data)
        if sent > int(limit) and not Path(done).exists():
            Path(done).touch()
            kill_sessions(Path(pid_file))
        link.sendall(data)
    link.shutdown(socket.SHUT_WR)
    threading.Event().wait()


if __name__ == "__main__":
    main()
