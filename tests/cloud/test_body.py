"""Bodies that do not end."""

import tracemalloc
import zlib

import pytest
from fake_server import handled, serving

from loadstone.cloud import body, connect, from_environment
from loadstone.errors import EnvironmentUnusable

CHUNK = b" " * 2**20


def endless(request):
    request.send_response(200)
    request.end_headers()
    request.close_connection = True
    while True:
        request.wfile.write(CHUNK)


def compressed(request):
    """Half a megabyte that becomes 512 MB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    sent = b"".join(packer.compress(CHUNK) for _ in range(512)) + packer.flush()
    request.send_response(200)
    request.send_header("Content-Encoding", "gzip")
    request.send_header("Content-Length", str(len(sent)))
    request.end_headers()
    request.wfile.write(sent)


@pytest.mark.parametrize("answer", [endless, compressed])
def test_an_answer_without_end_is_refused_within_its_limit(variables, answer):
    with serving(handled(answer)) as url:
        cloud = from_environment({**variables, "OS_AUTH_URL": f"{url}/v3"})
        tracemalloc.start()
        try:
            with pytest.raises(EnvironmentUnusable, match=r"/v3: its answer is longer than 64 MiB"):
                connect(cloud)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert most < 4 * body.MOST_BYTES
