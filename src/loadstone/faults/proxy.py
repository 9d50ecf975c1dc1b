"""A network fault between haproxy and a node: `python -m loadstone.faults.proxy PORT TARGET DELAY`.

Where the kernel can neither delay nor drop packets of one peer, haproxy is sent to this process
instead of the node. With a delay in seconds it forwards each direction so much later. With `cut` it
accepts nothing, so that who connects is never answered, as with a partition. It ends after
LONGEST_S if nobody is left to end it.
"""

import asyncio
import signal
import socket
import sys
from contextlib import suppress

from loadstone.lab.ports import HOST

LONGEST_S = 700.0
LAST_S = 4.0  # for requests on their way at the end
CHUNK = 65_536
FILL = 8  # connections that fill a listen queue of length 0, so that the kernel drops further ones
CUT = "cut"


def _main() -> None:
    port, target, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with suppress(TimeoutError):
        asyncio.run(_until_the_end(port, target, None if how == CUT else float(how)))


async def _until_the_end(port: int, target: int, delay_s: float | None) -> None:
    if delay_s is None:
        await _cut(port)
        return
    open_now: set[asyncio.Task[None]] = set()

    def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_forward(reader, writer, target, delay_s))
        open_now.add(task)
        task.add_done_callback(open_now.discard)

    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    server = await asyncio.start_server(take, HOST, port)
    async with asyncio.timeout(LONGEST_S):
        await ended.wait()
    server.close()
    if open_now:  # requests on their way are no part of the fault
        await asyncio.wait(open_now, timeout=LAST_S)


async def _cut(port: int) -> None:
    """Listen without accepting; the listen queue is full at once."""
    listener = socket.create_server((HOST, port), backlog=0)
    filling = []
    for _ in range(FILL):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex((HOST, port))
        filling.append(one)
    await asyncio.sleep(LONGEST_S)
    for one in (*filling, listener):
        one.close()


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int, delay_s: float
) -> None:
    try:
        to_reader, to_writer = await asyncio.open_connection(HOST, target)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_pipe(reader, to_writer, delay_s), _pipe(to_reader, writer, delay_s))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float) -> None:
    """Forward what comes so much later, each piece by itself, so that throughput is kept."""
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def send() -> None:
        while True:
            due_s, chunk = await waiting.get()
            await asyncio.sleep(due_s - loop.time())
            if not chunk:
                return
            writer.write(chunk)
            await writer.drain()

    async def receive() -> None:
        chunk = b"."
        while chunk:
            try:
                chunk = await reader.read(CHUNK)
            except OSError:
                chunk = b""
            waiting.put_nowait((loop.time() + delay_s, chunk))

    with suppress(OSError):
        await asyncio.gather(send(), receive())
    writer.close()


if __name__ == "__main__":
    _main()
