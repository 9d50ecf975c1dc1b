"""A network fault between haproxy and a node.

`python -m loadstone.faults.proxy PORT TARGET DELAY SECONDS`. Where the kernel can neither delay nor
drop packets of one peer, haproxy connects to this process instead of the node. With a delay in
seconds, it delays each direction by that time. With `cut` it accepts no connection, so clients
never get an answer, as in a network partition. With `loss=SHARE` it imitates TCP with packet loss:
a connection whose first packet is lost is a second late, any other chunk by the retransmission
time-out, which doubles with each loss. It ends after SECONDS if nobody ends it.
"""

import asyncio
import random
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass

from loadstone.lab.ports import HOST

LAST_S = 4.0  # for requests in progress at the end
CHUNK = 65_536
FILL = 8  # connections that fill a listen queue of length 0, so that the kernel drops further ones
CUT = "cut"
LOSS = "loss="
# RFC 6298: the first time-out of a connection, and the least one that Linux has (TCP_RTO_MIN).
FIRST_S, LEAST_S = 1.0, 0.2
MOST_LOSSES = 6  # of one packet in a row


@dataclass(frozen=True, slots=True)
class Way:
    """Delay and loss of packets in transit."""

    delay_s: float = 0.0
    loss: float = 0.0  # share

    def late_s(self, time_out_s: float) -> float:
        """Return the delay of a packet whose losses are noticed after this time-out."""
        late_s = self.delay_s
        for number in range(MOST_LOSSES):
            if random.random() >= self.loss:  # noqa: S311  # no secret
                break
            late_s += time_out_s * 2**number
        return late_s


def _main() -> None:
    port, target, how, most_s = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    with suppress(TimeoutError):
        if how == CUT:
            asyncio.run(_cut(port, most_s))
        elif how.startswith(LOSS):
            way = Way(loss=float(how.removeprefix(LOSS)))
            asyncio.run(_until_the_end(port, target, way, most_s))
        else:
            asyncio.run(_until_the_end(port, target, Way(float(how)), most_s))


async def _until_the_end(port: int, target: int, way: Way, most_s: float) -> None:
    open_now: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_forward(reader, writer, target, way))
        open_now.add(task)
        task.add_done_callback(open_now.discard)

    terminated = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminated.set)
    server = await asyncio.start_server(accept, HOST, port)
    async with asyncio.timeout(most_s):
        await terminated.wait()
    server.close()
    if open_now:  # requests in progress are not part of the fault
        await asyncio.wait(open_now, timeout=LAST_S)


async def _cut(port: int, most_s: float) -> None:
    """Listen without accepting; the listen queue is full at once."""
    listener = socket.create_server((HOST, port), backlog=0)
    clients = []
    for _ in range(FILL):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex((HOST, port))
        clients.append(client)
    await asyncio.sleep(most_s)
    for client in (*clients, listener):
        client.close()


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int, way: Way
) -> None:
    if way.loss:
        await asyncio.sleep(way.late_s(FIRST_S))
    try:
        to_reader, to_writer = await asyncio.open_connection(HOST, target)
    except OSError:
        writer.close()
        return
    await asyncio.gather(_pipe(reader, to_writer, way), _pipe(to_reader, writer, way))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
    """Forward each chunk with the delay, independently, so that throughput is kept."""
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
            waiting.put_nowait((loop.time() + way.late_s(LEAST_S), chunk))

    with suppress(OSError):
        await asyncio.gather(send(), receive())
    writer.close()


if __name__ == "__main__":
    _main()
