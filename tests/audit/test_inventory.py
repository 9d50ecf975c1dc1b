"""Hosts from lists and from Ansible's inventories."""

import os

import pytest

from loadstone.audit import archive, inventory
from loadstone.audit.transport import SshOptions, container, ssh
from loadstone.errors import InvalidInput


def hosts(tmp_path, text, name="hosts"):
    path = tmp_path / name
    path.write_text(text)
    return inventory.read(path)


def test_a_plain_list_of_hosts(tmp_path):
    assert list(hosts(tmp_path, "# control\nadmin@a.example\n\nb.example\n")) == [
        "admin@a.example",
        "b.example",
    ]


def test_an_inventory_in_ini_form(tmp_path):
    text = """
bastion ansible_host=10.0.0.9

[control]
control[1:3] ansible_user=stack
[compute]
compute-[a:b].x
[all:vars]
ansible_port=2222
[cloud:children]
control
[cloud:vars]
ansible_ssh_common_args='-J bastion'
"""
    found = hosts(tmp_path, text)
    assert list(found) == [
        *("bastion", "control1", "control2", "control3"),
        *("compute-a.x", "compute-b.x"),
    ]
    assert found["control2"] == {
        "ansible_user": "stack",
        "ansible_port": "2222",
        "ansible_ssh_common_args": "-J bastion",
    }
    assert found["bastion"] == {"ansible_host": "10.0.0.9", "ansible_port": "2222"}


def test_an_inventory_in_yaml_form(tmp_path):
    text = """
all:
  vars: {ansible_user: stack}
  children:
    control:
      hosts:
        control1: {ansible_host: 10.0.0.1}
        control2:
"""
    assert hosts(tmp_path, text, "hosts.yaml") == {
        "control1": {"ansible_user": "stack", "ansible_host": "10.0.0.1"},
        "control2": {"ansible_user": "stack"},
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hosts", "web[1:2].x:2222\ndb.x:2222 ansible_port=22\nfd00::1\n[fd00::2]:2222\n"),
        (
            "hosts.yaml",
            "all: {hosts: {'web[1:2].x:2222': , 'db.x:2222': {ansible_port: 22}, 'fd00::1': , "
            "'[fd00::2]:2222': }}",
        ),
    ],
)
def test_a_port_behind_the_name_of_a_host_is_that_of_ssh(tmp_path, name, text):
    assert hosts(tmp_path, text, name) == {
        "web1.x": {"ansible_port": "2222"},
        "web2.x": {"ansible_port": "2222"},
        "db.x": {"ansible_port": "22"},
        "fd00::1": {},
        "fd00::2": {"ansible_port": "2222"},
    }


@pytest.mark.parametrize(
    ("text", "name", "says"),
    [
        ("", "hosts", "no hosts in it"),
        ("-oProxyCommand=id\n", "hosts", "hosts:1: '-oProxyCommand=id' is not the name of a host"),
        ("a;id\n", "hosts", "hosts:1: 'a;id' is not the name of a host"),
        ("node1\nweb[3:1]\n", "hosts", "its end comes before its begin"),
        ("node[1:99999]\n", "hosts", "more than 1000 hosts"),
        ('a ansible_user="x\n', "hosts", "hosts:1: "),
        ("[]", "hosts.yaml", "must be a mapping of groups"),
        ("all:\n  children:\n    web: [a]", "hosts.yaml", "yaml:3: group web must be a mapping"),
        ("all:\n  hosts:\n    -x: {}", "hosts.yaml", "yaml:3: '-x' is not the name of a host"),
        (": :", "hosts.yaml", "not YAML"),
    ],
)
def test_a_mistake_names_file_and_line(tmp_path, text, name, says):
    with pytest.raises(InvalidInput) as told:
        hosts(tmp_path, text, name)
    assert says in str(told.value)
    assert str(tmp_path) in str(told.value)


def test_a_byte_order_mark_and_crlf_are_no_part_of_a_host(tmp_path):
    assert hosts(tmp_path, "\ufeffnode1\r\nnode2\r\n", "hosts").keys() == {"node1", "node2"}


def test_facts_may_begin_with_a_byte_order_mark(tmp_path):
    host = '{"host": "a", "failure": "no answer"}'
    (tmp_path / "facts.json").write_text(f'\ufeff{{"loadstone_audit": 1, "hosts": [{host}]}}')
    ((found,), is_lab) = archive.read(tmp_path / "facts.json")
    assert (found.failure, is_lab) == ("no answer", False)


def test_variables_become_options_of_ssh():
    variables = {
        "ansible_host": "10.0.0.1",
        "ansible_port": "2222",
        "ansible_user": "stack",
        "ansible_ssh_common_args": "-J bastion",
    }
    host = ssh("control1", SshOptions(become=True), variables)
    assert host.name == "control1"
    assert host.command[-3:] == ("--", "10.0.0.1", "sudo -n sh -s")
    assert " ".join(host.command[:-3]) == (
        "ssh -T -o BatchMode=yes -o ConnectTimeout=10 -p 2222 -l stack -J bastion"
    )


def test_quotes_within_the_value_of_a_group_are_part_of_it(tmp_path):
    """The usual way to hosts behind another one."""
    proxy = '-o ProxyCommand="ssh -W %h:%p bastion"'
    text = f"control1\n[all:vars]\nansible_ssh_common_args='{proxy}'\nansible_user=\"stack\"\n"
    found = hosts(tmp_path, text)["control1"]
    assert found == {"ansible_ssh_common_args": proxy, "ansible_user": "stack"}
    command = ssh("control1", SshOptions(), found).command
    assert "ProxyCommand=ssh -W %h:%p bastion" in command


def test_an_open_quote_in_arguments_of_ssh_is_a_mistake_of_the_inventory():
    variables = {"ansible_ssh_common_args": '-o ProxyCommand="ssh bastion'}
    with pytest.raises(InvalidInput, match="control1: ansible_ssh_common_args: No closing quot"):
        ssh("control1", SshOptions(), variables)


def test_a_host_with_a_local_connection_is_this_machine(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    variables = {"ansible_connection": "local"}
    assert ssh("localhost", SshOptions(), variables).command == ("sh", "-s")
    become = ssh("localhost", SshOptions(become=True), variables)
    assert become.command == ("sudo", "-n", "sh", "-s")
    monkeypatch.setattr(os, "geteuid", lambda: 0)  # as in a container, where sudo is seldom
    assert ssh("localhost", SshOptions(become=True), variables).command == ("sh", "-s")


def test_containers_and_pods_read_the_script_from_their_input():
    assert container("docker", "api").command == ("docker", "exec", "-i", "--", "api", "sh", "-s")
    pod = container("kubectl", "keystone-0").command
    assert pod == ("kubectl", "exec", "-i", "keystone-0", "--", "sh", "-s")


@pytest.mark.parametrize("pattern", ["n[1:1001]", "n[1:100][1:100]", "n[a:z][a:z][a:z]"])
def test_ranges_of_too_many_hosts_are_refused(tmp_path, pattern):
    for name, text in (("hosts", pattern), ("hosts.yaml", f"all: {{hosts: {{'{pattern}': }}}}")):
        (tmp_path / name).write_text(text)
        with pytest.raises(InvalidInput, match="more than 1000 hosts"):
            inventory.read(tmp_path / name)


def test_groups_that_share_children_are_followed_once(tmp_path):
    levels = [
        f"[g{n}:children]\ng{n + 1}\nh{n + 1}\n[h{n}:children]\ng{n + 1}\nh{n + 1}"
        for n in range(40)
    ]
    text = "\n".join(["[g40]", "last", *levels, "[g0:vars]", "ansible_user=ann"])
    (tmp_path / "hosts").write_text(text)
    assert inventory.read(tmp_path / "hosts") == {"last": {"ansible_user": "ann"}}  # not 2**40 ways


INI = """
[all:vars]
ansible_user=root
[cloud:vars]
ansible_user=cloud
ansible_port=22
[web:vars]
ansible_user=stack
[cloud:children]
web
db
[web]
web1
web2 ansible_user=ann
[db]
db1
[other]
other1
"""
YAML = """
all:
  hosts: {web1: , web2: {ansible_user: ann}, db1: , other1: }
  vars: {ansible_user: root}
  children:
    cloud:
      vars: {ansible_user: cloud, ansible_port: 22}
      children: {web: , db: {hosts: {db1: }}}
    web:
      hosts: {web1: , web2: }
      vars: {ansible_user: stack}
"""


@pytest.mark.parametrize(("name", "text"), [("hosts", INI), ("hosts.yaml", YAML)])
def test_variables_of_a_child_count_more_than_those_of_its_parents(tmp_path, name, text):
    found = hosts(tmp_path, text, name)
    assert {host: variables["ansible_user"] for host, variables in found.items()} == {
        "web1": "stack",
        "web2": "ann",
        "db1": "cloud",
        "other1": "root",
    }
    assert found["web1"]["ansible_port"] == "22"
    assert "ansible_port" not in found["other1"]


def test_groups_in_a_circle_end_no_command(tmp_path):
    text = "[a:children]\nb\n[b:children]\na\n[b]\nhost\n[a:vars]\nansible_user=ann\n"
    assert hosts(tmp_path, text) == {"host": {"ansible_user": "ann"}}
