"""What is read of haproxy's `show stat`."""

from loadstone.monitor.sources import haproxy
from loadstone.monitor.sources.open import open_source

TABLE = """\
# pxname,svname,qcur,scur,slim,type
keystone,FRONTEND,,9,2000,0
keystone,sock-1,,9,2000,3
keystone,Node-1,4,8,8,2
keystone,node-2,0,1,,2
keystone,BACKEND,30,9,200,1
"""


def test_sockets_of_a_frontend_are_not_servers_with_a_limit(monkeypatch):
    answer = f"Name: HAProxy\nCurrConns: 9\n\n{TABLE}\n".encode()
    monkeypatch.setattr(haproxy, "exchange", lambda *_: answer)
    source = open_source("haproxy:///run/haproxy.sock")
    limits = {one.source: one.value for one in source.read() if one.metric == "sessions_limit"}
    assert limits == {
        "haproxy/keystone/frontend": 2000,
        "haproxy/keystone/node-1": 8,
        "haproxy/keystone/backend": 200,
    }
