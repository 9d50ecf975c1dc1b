"""A TCP proxy on loopback that delays all bytes, as a long line does."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator


async def _forward(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay_s: float
) -> None:
    """Write what was read `delay_s` later, however much is under way."""
    loop = asyncio.get_running_loop()
    last_s = loop.time()
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            last_s = loop.time() + delay_s
            loop.call_at(last_s, writer.write, data)
    loop.call_at(max(last_s, loop.time()) + delay_s, writer.close)


@contextlib.contextmanager
def delay_proxy(port: int, delay_s: float) -> Iterator[int]:
    """Forward connections to a local port; an answer comes `delay_s` later than without."""
    loop = asyncio.new_event_loop()
    tasks: set[asyncio.Task[None]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", port)
        writers.extend((writer, there_writer))
        for pair in ((reader, there_writer), (there_reader, writer)):
            task = loop.create_task(_forward(*pair, delay_s / 2))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    server = loop.run_until_complete(asyncio.start_server(connected, "127.0.0.1", 0, backlog=4096))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(_close(server, tasks, writers), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(
    server: asyncio.Server, tasks: set[asyncio.Task[None]], writers: list[asyncio.StreamWriter]
) -> None:
    server.close()
    for task in tuple(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    for writer in writers:
        writer.transport.abort()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)
