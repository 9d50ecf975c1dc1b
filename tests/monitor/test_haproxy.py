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


STATES = """\
# pxname,svname,scur,slim,status,act,bck,type
api,BACKEND,2,200,UP,1,1,1
api,node-1,2,8,UP,1,0,2
api,node-2,0,8,DOWN 1/2,1,0,2
api,node-3,0,8,MAINT (via api/node-2),1,0,2
api,node-4,0,8,no check,0,1,2
db,node-1,0,4,DOWN,1,0,2
db,node-2,0,4,DOWN,0,1,2
db,node-3,4,4,UP 1/3,0,1,2
db,node-4,0,4,UP,0,1,2
db,BACKEND,4,200,UP,0,2,1
"""


def test_servers_that_get_no_requests_add_no_sessions_to_a_backend(monkeypatch):
    monkeypatch.setattr(haproxy, "exchange", lambda *_: f"Name: HAProxy\n\n{STATES}\n".encode())
    source = open_source("haproxy:///run/haproxy.sock")
    limits = {one.source: one.value for one in source.read() if one.metric == "sessions_limit"}
    servers = {"haproxy/api/node-1": 8, "haproxy/db/node-3": 4}
    unused = ("api/node-2", "api/node-3", "api/node-4", "db/node-1", "db/node-2", "db/node-4")
    idle = {f"haproxy/{name}": 0 for name in unused}
    backends = {"haproxy/api/backend": 200, "haproxy/db/backend": 200}
    assert limits == servers | idle | backends
